"""Anchors and the keys that sign them."""

from __future__ import annotations

import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from foldlog.core.anchor import Anchor, anchor_of
from foldlog.signing import PublicKeys, SigningKey, SigningKeyError, key_id_of

from tests.cli.shell import Shell

ANCHOR = Anchor(
    "default", "séance", 7, 5, bytes(range(32)), "2026-01-02T03:04:05.000000006Z", b"k" * 32
)
# What docs/how-to/anchor.md describes, by hand.
SIGNED = (
    "666f6c646c6f67206865616420310000000007"
    + b"default".hex()
    + "00000007"
    + "s\u00e9ance".encode().hex()
    + "00000000000000070000000000000005"
    + bytes(range(32)).hex()
    + "0000001e"
    + b"2026-01-02T03:04:05.000000006Z".hex()
    + "6b" * 32
)


@pytest.fixture
def key(tmp_path: Path) -> SigningKey:
    """A new key."""
    return SigningKey.make(tmp_path / "key.pem")


@pytest.fixture
def signed(key: SigningKey) -> Anchor:
    """A signed anchor."""
    anchor = replace(ANCHOR, key_id=key.key_id, cursor="17")
    return replace(anchor, signature=key.sign(anchor.signed_bytes()))


def test_the_bytes_that_are_signed_are_those_of_the_documentation() -> None:
    assert ANCHOR.signed_bytes().hex() == SIGNED


def test_a_line_is_the_anchor(signed: Anchor) -> None:
    assert signed.line().endswith("\n")
    assert anchor_of(signed.line()) == signed


def test_a_signature_is_the_keys_that_made_it(key: SigningKey, signed: Anchor) -> None:
    keys = PublicKeys([key.public_key])
    assert keys.knows(key_id_of(key.public_key))
    assert keys.signed(signed)
    assert keys.signed(replace(signed, cursor="18"))


def test_no_other_key_accepts_it(tmp_path: Path, signed: Anchor) -> None:
    other = SigningKey.make(tmp_path / "other.pem")
    assert not PublicKeys([other.public_key]).signed(signed)
    assert not PublicKeys([other.public_key]).signed(replace(signed, key_id=other.key_id))


@pytest.mark.parametrize(
    "change",
    [
        {"tenant": "defaul"},
        {"tenant": "defaults", "session_id": "\u00e9ance"},
        {"session_id": "s"},
        {"version": 6},
        {"next_seq": 6},
        {"chain": bytes(32)},
        {"time": "2026-01-02T03:04:05.000000007Z"},
        {"signature": bytes(64)},
    ],
    ids=lambda change: " and ".join(change),
)
def test_a_change_of_anything_is_noticed(
    change: dict[str, object], key: SigningKey, signed: Anchor
) -> None:
    assert not PublicKeys([key.public_key]).signed(replace(signed, **change))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("spoil", "wrong"),
    [
        (lambda line: line[:-20], "Unterminated string"),
        (lambda line: "[]", "it is no object"),
        (lambda line: "1" * 5_000, "Exceeds the limit"),
        (lambda line: line.replace('"version":7', '"version":0'), "version is no whole number"),
        (lambda line: line.replace('"version":7', '"version":true'), "version is no whole number"),
        (lambda line: line.replace('"next_seq":5', '"next_seq":9223372036854775808'), "next_seq"),
        (lambda line: line.replace('"default"', "null"), "tenant is no text"),
        (lambda line: line.replace('"default"', '"\\ud800"'), "tenant is no text"),
        (lambda line: line.replace('"chain":"00', '"chain":"'), "chain is not 64 hexadecimal"),
        (lambda line: line.replace('"chain":"00', '"chain":"zz'), "chain is not 64 hexadecimal"),
        (lambda line: line.replace('"signature"', '"sign"'), "signature is no text"),
    ],
)
def test_a_line_that_is_no_anchor_is_told(
    spoil: Callable[[str], str], wrong: str, signed: Anchor
) -> None:
    with pytest.raises(ValueError, match=wrong):
        anchor_of(spoil(signed.line()))


def test_a_key_is_its_owners_alone_and_never_overwritten(tmp_path: Path) -> None:
    path, shell = tmp_path / "signing.pem", Shell("")
    key_id = shell.ok("signing-key", str(path)).strip()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert SigningKey.read(path).key_id.hex() == key_id
    assert PublicKeys.read([Path(f"{path}.pub")]).knows(bytes.fromhex(key_id))
    before = path.read_bytes()
    for taken in (path, tmp_path / "new.pem"):
        Path(f"{taken}.pub").touch()
        result = shell.run("signing-key", str(taken))
        assert (result.exit_code, "never overwritten" in result.stderr) == (2, True)
    assert path.read_bytes() == before
    assert not (tmp_path / "new.pem").exists()


def public(path: Path) -> None:
    path.write_bytes(Path(f"{path}.pub").read_bytes())


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        (lambda path: path.chmod(0o644), "chmod 600"),
        (lambda path: path.chmod(0o620), "chmod 600"),
        (lambda path: path.unlink(), "cannot be read"),
        (lambda path: path.write_text("x"), "holds no unencrypted private key in PEM"),
        (public, "holds no unencrypted private key in PEM"),
    ],
    ids=["others read it", "a group writes it", "missing", "no key", "the public part"],
)
def test_a_service_does_not_start_with_a_key_that_it_cannot_use(
    spoil: Callable[[Path], object], told: str, tmp_path: Path
) -> None:
    path, shell = tmp_path / "signing.pem", Shell("")
    shell.ok("signing-key", str(path))
    spoil(path)
    result = shell.run("serve", "--signing-key-file", str(path))
    assert result.exit_code == 2
    assert told in result.stderr


def test_a_group_may_read_a_key(tmp_path: Path) -> None:
    key = SigningKey.make(tmp_path / "key.pem")
    (tmp_path / "key.pem").chmod(0o440)
    assert SigningKey.read(tmp_path / "key.pem").key_id == key.key_id


@pytest.mark.parametrize("text", ["", "x", "-----END PUBLIC KEY-----"])
def test_a_file_without_public_keys_is_told(text: str, tmp_path: Path) -> None:
    path = tmp_path / "key.pub"
    path.write_text(text)
    with pytest.raises(SigningKeyError, match=r"key\.pub holds"):
        PublicKeys.read([path])
