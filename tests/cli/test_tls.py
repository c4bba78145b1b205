"""TLS between real processes: who is let in, who is refused, and certificates that change."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import foldlog
import grpc
import pytest
import trustme
from foldlog.client.errors import ConnectionLostError

from tests.cli.shell import Shell
from tests.cli.test_serving import address_in, serving
from tests.cli.test_serving import foldlog as run

CA = trustme.CA()
DEADLINE_S = 30.0


def write(path: Path, *blobs: trustme.Blob) -> str:
    """Write PEM to a file, which is replaced as a whole, and return its path."""
    part = path.with_suffix(".part")
    part.write_bytes(b"".join(blob.bytes() for blob in blobs))
    part.replace(path)
    return str(path)


def certified(path: Path, ca: trustme.CA = CA, name: str = "localhost") -> str:
    """Write a certificate with its key for a server of that name, and return the file's path."""
    made = ca.issue_cert(name)
    return write(path, made.private_key_pem, *made.cert_chain_pems)


@pytest.fixture
def ca_file(tmp_path: Path) -> str:
    """The CA's own certificate."""
    return write(tmp_path / "ca.pem", CA.cert_pem)


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """The address of a server with TLS."""
    certificate = certified(tmp_path / "server.pem")
    with serving(tmp_path, "--tls-certificate-file", certificate) as (_, line):
        yield address_in(line)


def tls(ca_file: str, **given: str) -> foldlog.Tls:
    """Return what a client is to know; the server's certificate is for localhost."""
    return foldlog.Tls(ca_file=ca_file, server_name="localhost", **given)


def reached(address: str, tls: foldlog.Tls | None) -> bool:
    """Tell whether a client gets an answer."""
    with foldlog.Client(address, retry=None, timeout_s=DEADLINE_S, tls=tls) as client:
        try:
            [*client.list()]
        except ConnectionLostError:
            return False
        return True


def test_a_client_that_knows_the_ca_is_served(address: str, ca_file: str) -> None:
    with foldlog.Client(address, tls=tls(ca_file)) as client:
        session = client.create("s")
        session.append(foldlog.user("hi"))
        assert session.check([folded.message for folded in session.messages()]).ok


async def test_so_is_an_asyncio_client(address: str, ca_file: str) -> None:
    async with foldlog.AsyncClient(address, tls=tls(ca_file)) as client:
        session = await client.create("s")
        await session.append(foldlog.user("hi"))
        assert len(await session.messages()) == 1
    await asyncio.sleep(0)


@pytest.mark.parametrize("who", ["plaintext", "another CA", "another name"])
def test_nobody_else_gets_an_answer(who: str, address: str, ca_file: str, tmp_path: Path) -> None:
    stranger = write(tmp_path / "other.pem", trustme.CA().cert_pem)
    found = {
        "plaintext": None,
        "another CA": tls(stranger),
        "another name": foldlog.Tls(ca_file=ca_file, server_name="elsewhere"),
    }
    assert not reached(address, found[who])
    assert reached(address, tls(ca_file))


def test_the_command_line_takes_it_from_the_environment(address: str, ca_file: str) -> None:
    known = {"FOLDLOG_CA_FILE": ca_file, "FOLDLOG_SERVER_NAME": "localhost"}
    assert Shell(address).run("create", "s", **known).stdout == "s\n"
    missing = Shell(address).run("sessions", FOLDLOG_CA_FILE="/nowhere.pem")
    assert missing.exit_code == 2
    assert "/nowhere.pem cannot be read" in missing.output


def test_mutual_tls_lets_in_whom_its_ca_vouches_for(ca_file: str, tmp_path: Path) -> None:
    server = certified(tmp_path / "server.pem")
    clients = trustme.CA()
    ours = certified(tmp_path / "ours.pem", clients, "worker")
    theirs = certified(tmp_path / "theirs.pem", trustme.CA(), "worker")
    client_ca = write(tmp_path / "clients.pem", clients.cert_pem)
    flags = ("--tls-certificate-file", server, "--tls-client-ca-file", client_ca)
    with serving(tmp_path, *flags) as (_, line):
        address = address_in(line)
        assert reached(address, tls(ca_file, certificate_file=ours))
        assert not reached(address, tls(ca_file))
        assert not reached(address, tls(ca_file, certificate_file=theirs))


def test_a_new_certificate_is_used_without_a_restart(ca_file: str, tmp_path: Path) -> None:
    file = tmp_path / "server.pem"
    later = trustme.CA()
    later_ca = write(tmp_path / "later.pem", later.cert_pem)
    with serving(tmp_path, "--tls-certificate-file", certified(file)) as (_, line):
        address = address_in(line)
        with foldlog.Client(address, tls=tls(ca_file)) as connected:
            connected.create("before")
            certified(file, later)
            assert reached(address, tls(later_ca))
            assert not reached(address, tls(ca_file))
            connected.create("after")  # on the connection that was made before


def test_a_new_client_ca_counts_for_new_connections(ca_file: str, tmp_path: Path) -> None:
    """A half-written one counts for none: nobody else is let in, and nobody kept out."""
    former, later = trustme.CA(), trustme.CA()
    old = tls(ca_file, certificate_file=certified(tmp_path / "old.pem", former, "worker"))
    new = tls(ca_file, certificate_file=certified(tmp_path / "new.pem", later, "worker"))
    file = tmp_path / "clients.pem"
    flags = ("--tls-certificate-file", certified(tmp_path / "server.pem"))
    with serving(tmp_path, *flags, "--tls-client-ca-file", write(file, former.cert_pem)) as (
        _,
        line,
    ):
        address = address_in(line)
        with foldlog.Client(address, tls=old) as connected:
            connected.create("before")
            write(file, later.cert_pem)
            assert (reached(address, new), reached(address, old)) == (True, False)
            connected.create("after")
        for broken in (b"", file.read_bytes()[:-40]):
            file.write_bytes(broken)
            found = reached(address, new), reached(address, old), reached(address, tls(ca_file))
            assert found == (True, False, False)


def test_an_expired_certificate_of_a_client_is_refused(ca_file: str, tmp_path: Path) -> None:
    clients, past = trustme.CA(), datetime(2020, 1, 1, tzinfo=UTC)
    expired = clients.issue_cert("worker", not_before=past, not_after=past + timedelta(days=1))
    file = write(tmp_path / "expired.pem", expired.private_key_pem, *expired.cert_chain_pems)
    client_ca = write(tmp_path / "clients.pem", clients.cert_pem)
    flags = ("--tls-certificate-file", certified(tmp_path / "server.pem"))
    with serving(tmp_path, *flags, "--tls-client-ca-file", client_ca) as (_, line):
        assert not reached(address_in(line), tls(ca_file, certificate_file=file))


def test_a_broken_new_certificate_leaves_the_old_one(ca_file: str, tmp_path: Path) -> None:
    file = tmp_path / "server.pem"
    with serving(tmp_path, "--tls-certificate-file", certified(file)) as (process, line):
        address = address_in(line)
        file.write_text("half a certi")
        assert reached(address, tls(ca_file))
        file.unlink()
        assert reached(address, tls(ca_file))
        certified(file)
        assert reached(address, tls(ca_file))
        process.terminate()
        _, errors = process.communicate(timeout=DEADLINE_S)
    assert "tls.not_reloaded" in errors
    assert "tls.reloaded" in errors
    assert "PRIVATE KEY" not in errors


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (("--tls-certificate-file", "missing.pem"), "missing.pem"),
        (("--tls-certificate-file", "other.pem"), "other.pem"),
        (("--tls-client-ca-file", "ca.pem"), "needs --tls-certificate-file"),
    ],
)
def test_files_that_cannot_be_used_are_named(
    flags: tuple[str, ...], expected: str, tmp_path: Path
) -> None:
    (tmp_path / "other.pem").write_text("no PEM")
    done = run("serve", "--listen", "127.0.0.1:0", *flags, cwd=tmp_path)
    assert done.returncode == 2
    assert expected in done.stderr
    assert done.stderr.count("\n") == 1


def test_plaintext_to_other_machines_is_warned_of_where_it_is_allowed(tmp_path: Path) -> None:
    aloud = ("--allow-plaintext", "--allow-anonymous")
    with serving(tmp_path, *aloud, "--listen", "0.0.0.0:0") as (process, line):
        channel = grpc.insecure_channel(address_in(line).replace("0.0.0.0", "127.0.0.1"))
        grpc.channel_ready_future(channel).result(DEADLINE_S)
        channel.close()
        process.terminate()
        _, errors = process.communicate(timeout=DEADLINE_S)
    assert "server.plaintext" in errors
    assert "whoever is on the way reads along" in errors
