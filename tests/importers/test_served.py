"""`foldlog import` against a served process."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from uuid import uuid4

import pytest
from foldlog.client.client import Client
from foldlog.client.new_events import user
from foldlog.importers.formats import Format
from foldlog.importers.importing import Import

from tests.acceptance.documents import commands, examples
from tests.cli.shell import Shell
from tests.client.proxy import Proxy
from tests.conftest import Servers
from tests.importers.reading import DATA, NAMES, bytes_of, edited, read, rows_of, text_of
from tests.served import ROOT, Served


@pytest.fixture
def shell(servers: Servers) -> Shell:
    """A shell of a running service."""
    return Shell(servers.shared("sqlite-memory").address)


@pytest.fixture
def new_id() -> str:
    """An id that no session has."""
    return f"s-{uuid4().hex}"


def written(folder: Path, data: bytes) -> str:
    """Write a file and return its path."""
    path = folder / "given"
    path.write_bytes(data)
    return str(path)


@pytest.mark.parametrize("name", NAMES)
def test_a_file_becomes_a_session_that_says_what_the_file_says(
    name: str, served: Served, new_id: str
) -> None:
    shell = Shell(served.address)
    told = shell.json("import", str(DATA / name), "--session", new_id)
    made = read(bytes_of(name))
    assert told["session_id"] == new_id
    assert told["next_seq"] == made.entries[-1].seq + 1
    with Client(served.address) as client:
        session = client.session(new_id)
        assert [(m.seq, m.message) for m in session.messages()] == made.surface
        assert session.verify().intact
        times = {event.seq: event.time_ns for event in session.events()}
        stated = {e.seq: e.event.time_ns for e in made.entries if e.event.time_ns is not None}
        assert times | stated == times


def test_a_session_s_id_is_the_one_in_the_file_and_labels_say_where_it_is_from(
    shell: Shell, tmp_path: Path
) -> None:
    found = f"s-{uuid4().hex}"
    data = edited("codex_tools.jsonl", lambda rows: rows[0]["payload"].update(id=found))
    assert shell.ok("import", written(tmp_path, data)).strip() == found
    with Client(shell.address) as client:
        info = client.get(found)
        assert info.labels == {"imported_from": "codex"}
        assert json.loads(info.metadata_json)["imported"]["cli_version"] == "0.65.0"


def test_a_file_without_an_id_gives_one_made_of_its_content(shell: Shell, tmp_path: Path) -> None:
    data = json.dumps([{"role": "user", "content": uuid4().hex}]).encode()
    first = shell.ok("import", written(tmp_path, data)).strip()
    assert first.startswith("import-")
    assert shell.ok("import", "-", stdin=data).strip() == first


@pytest.mark.parametrize("name", ["claude_code_tools.jsonl", "openai_list.json"])
def test_the_same_file_twice_is_imported_once(name: str, shell: Shell, new_id: str) -> None:
    first = shell.json("import", str(DATA / name), "--session", new_id)
    with Client(shell.address) as client:
        client.session(new_id).append(user("it goes on"))
        again = shell.json("import", str(DATA / name), "--session", new_id)
        assert (first["was_there"], again["was_there"]) == (False, True)
        assert client.get(new_id).next_seq == first["next_seq"] + 1
        assert client.session(new_id).messages()[-1].message == user("it goes on")


def test_another_file_under_an_id_that_exists_is_refused(
    shell: Shell, new_id: str, tmp_path: Path
) -> None:
    shell.ok("import", str(DATA / "dsh.jsonl"), "--session", new_id)
    other = written(tmp_path, bytes_of("dsh.jsonl") + b'{"type": "torn')
    result = shell.run("import", other, "--session", new_id)
    assert result.exit_code == 2
    assert result.stderr == (
        f"foldlog: session {new_id} exists. Choose another id, or use this session.\n"
    )


def test_a_damaged_middle_is_one_line_and_leaves_nothing_behind(
    shell: Shell, new_id: str, tmp_path: Path
) -> None:
    whole = bytes_of("codex_tools.jsonl").splitlines(keepends=True)
    path = written(tmp_path, b"".join([*whole[:7], b"{bad\n", *whole[7:]]))
    result = shell.run("import", path, "--session", new_id)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"foldlog: {path} cannot be imported: line 8: it is not JSON: ")
    assert result.stderr.count("\n") == 1
    assert shell.run("info", new_id).exit_code == 2
    salvaged = shell.run("import", path, "--session", new_id, "--salvage")
    assert salvaged.exit_code == 0
    assert "damaged: line 8: left out: it is not JSON" in salvaged.stderr
    assert (
        shell.json("info", new_id)["next_seq"]
        == read(bytes_of("codex_tools.jsonl")).entries[-1].seq + 1
    )


def test_a_torn_end_is_cut_and_said(shell: Shell, new_id: str, tmp_path: Path) -> None:
    path = written(tmp_path, bytes_of("claude_code_tools.jsonl")[:-20])
    result = shell.run("import", path, "--session", new_id)
    assert result.exit_code == 0
    assert "cut: line 13: the file ends in the middle of it" in result.stderr


def test_a_dry_run_writes_nothing(shell: Shell, new_id: str) -> None:
    path = str(DATA / "dsh.jsonl")
    told = shell.json("import", path, "--session", new_id, "--dry-run")
    assert told["dry_run"]
    assert told["next_seq"] == 16
    assert told["report"]["read"]["turn/start"] == 1
    assert shell.run("info", new_id).exit_code == 2


def test_a_dry_run_needs_no_service() -> None:
    assert Shell("127.0.0.1:1").json("import", str(DATA / "nous_v3.json"), "--dry-run")["report"]


def test_an_export_is_known_and_imported_once(shell: Shell, new_id: str, tmp_path: Path) -> None:
    shell.ok("import", str(DATA / "claude_code_compacted.jsonl"), "--session", new_id)
    path = str(tmp_path / "export")
    shell.ok("export", new_id, path)
    copy = f"{new_id}-copy"
    assert shell.json("import", path, "--session", copy)["was_there"] is False
    assert shell.json("import", path, "--session", copy)["was_there"] is True
    assert shell.run("import", path).exit_code == 2  # the session that it was made from
    with Client(shell.address) as client:
        assert client.session(copy).messages() == client.session(new_id).messages()


@pytest.mark.parametrize("end", [-1, -30, -200], ids=["newline", "end line", "event"])
def test_of_a_torn_export_salvage_takes_the_whole_lines(
    end: int, shell: Shell, new_id: str, tmp_path: Path
) -> None:
    shell.ok("import", str(DATA / "openai_list.json"), "--session", new_id)
    whole = shell.ok("export", new_id).encode()
    torn = written(tmp_path, whole[:end])
    copy = f"{new_id}-copy"
    told = shell.json("import", torn, "--session", copy, "--salvage")
    assert told["next_seq"] == whole[:end].count(b"\n") - 1
    assert shell.json("verify", copy)["intact"]


def test_an_error_of_the_service_names_the_line_of_the_file(
    serve: Callable[..., Served], tmp_path: Path
) -> None:
    shell = Shell(serve("sqlite-memory", FOLDLOG_LIMIT_EVENT_BYTES="4000").address)
    data = edited("codex_tools.jsonl", lambda r: r[11]["payload"].update(output="x" * 5_000))
    result = shell.run("import", written(tmp_path, data))
    assert result.exit_code == 2
    assert "line 12.body: 5" in result.stderr
    assert "exceeds the limit of 4000" in result.stderr


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "it is empty"),
        (b"hello\n", "its format cannot be told: name it with --format"),
        (b"\x28\xb5\x2f\xfd....", "it is compressed (zstd): decompress it first"),
    ],
    ids=["empty", "text", "zstd"],
)
def test_bad_input_is_one_line(data: bytes, told: str, shell: Shell, tmp_path: Path) -> None:
    path = written(tmp_path, data)
    result = shell.run("import", path)
    assert result.exit_code == 2
    assert result.stderr == f"foldlog: {path} cannot be imported: {told}.\n"


@pytest.mark.parametrize("name", ["codex_tools.jsonl", "claude_code_branches.jsonl"])
def test_memory_does_not_grow_with_the_bytes_of_a_file(name: str) -> None:
    rows = rows_of(name)
    line = json.dumps(
        {"type": "queue-operation" if "claude" in name else "event_msg"}
        | {
            "timestamp": "2026-03-01T09:00:00Z",
            "payload": {"type": "token_count", "x": "y" * 8_000},
        }
    ).encode()
    data = b"\n".join([*(json.dumps(row).encode() for row in rows), *([line] * 3_000)]) + b"\n"
    work = Import(BytesIO(data), Format.CODEX if "codex" in name else Format.CLAUDE_CODE)
    tracemalloc.start()
    try:
        work.dry_run()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert work.report.lines == len(rows) + 3_000
    assert peak < 4_000_000 < len(data)


def test_a_large_file_is_read_again_after_a_lost_connection_and_imported_once(
    shell: Shell, new_id: str
) -> None:
    message = {"role": "user", "content": "x" * 100_000}
    data = b"".join(json.dumps(message | {"name": str(i)}).encode() + b"\n" for i in range(100))
    with Proxy(shell.address) as proxy, Client(proxy.address) as client:
        seen = 0

        def told(size: int) -> None:
            nonlocal seen
            before, seen = seen, seen + size
            if before < 5_000_000 <= seen:
                proxy.cut()

        outcome = Import(BytesIO(data), session_id=new_id, told=told).run(client)
        assert outcome.next_seq == 100
        assert seen > len(data)
        folded = client.session(new_id).messages()
        assert [text_of(each.message) for each in folded] == ["x" * 100_000] * 100


def test_the_how_to_s_commands_and_example_do_what_it_says(
    shell: Shell,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    how_to = ROOT / "docs" / "how-to" / "import.md"
    found = f"s-{uuid4().hex}"
    data = edited("codex_tools.jsonl", lambda rows: rows[0]["payload"].update(id=found))
    (tmp_path / "session.jsonl").write_bytes(data)
    damaged = json.dumps({"role": "user", "content": found}).encode() + b"\n{\n"
    (tmp_path / "damaged.jsonl").write_bytes(damaged * 2)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FOLDLOG_ADDRESS", shell.address)
    for command in commands(how_to):
        shell.ok(*command.replace("copy", f"{found}-copy").split()[1:])
    (example,) = examples(how_to)
    exec(compile(example.code, str(how_to), "exec"), {})
    assert capsys.readouterr().out == f"{found} 0\n"
