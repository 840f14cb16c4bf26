"""Damages a file by its kind: bytes for all, cells of tables, nodes of JSON and YAML, members of archives, headers, pickles.

All take a `random.Random` and the untouched bytes, and give bytes. The same seed gives the same damage.
"""

import csv
import gzip
import io
import json
import pickle
import random
import struct
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import yaml

from attack import values

Damage = Callable[[random.Random, bytes], bytes]
ODD = (0, 1, 0x7F, 0x80, 0xFE, 0xFF)
HUGE = (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 0x7FFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 1 << 40)


def flipped(rng: random.Random, content: bytes) -> bytes:
    """One to sixteen bytes are others."""
    found = bytearray(content or b"\0")
    for _ in range(rng.choice((1, 1, 1, 2, 4, 16))):
        # headers and endings matter most
        near = rng.choice((len(found), min(len(found), 64), min(len(found), 512)))
        place = rng.randrange(near) if rng.random() < 0.8 else len(found) - 1 - rng.randrange(near)
        found[place] = rng.choice((found[place] ^ (1 << rng.randrange(8)), rng.choice(ODD), rng.randrange(256)))
    return bytes(found)


def cut(rng: random.Random, content: bytes) -> bytes:
    return content[: rng.choice((0, 1, rng.randrange(len(content) + 1), rng.randrange(len(content) + 1), len(content) - 1))]


def moved(rng: random.Random, content: bytes) -> bytes:
    """A piece is left out, doubled, or put elsewhere."""
    if not content:
        return b"\xff"
    start = rng.randrange(len(content))
    end = min(len(content), start + rng.choice((1, 2, 4, 16, 100, 1000)))
    piece = content[start:end]
    where = rng.randrange(len(content))
    return rng.choice(
        (
            content[:start] + content[end:],
            content[:end] + piece * rng.choice((1, 2, 50)) + content[end:],
            content[:where] + piece + content[where:],
        )
    )


def numbered(rng: random.Random, content: bytes) -> bytes:
    """A number of two, four or eight bytes is huge, or none."""
    size = rng.choice((2, 4, 8))
    place = rng.randrange(max(1, len(content) - size))
    number = rng.choice(HUGE) & ((1 << 8 * size) - 1)
    return content[:place] + number.to_bytes(size, rng.choice(("little", "big"))) + content[place + size :]


def followed(rng: random.Random, content: bytes) -> bytes:
    return content + rng.choice((b"\0", b"\xff" * 10, b"\n" * 1000, content, rng.randbytes(100)))


def strange(rng: random.Random, content: bytes) -> bytes:
    """Something else altogether."""
    return rng.choice(
        (
            b"",
            b"\0" * 4096,
            b"\xff\xfe",
            b"{}",
            b"[]",
            b"null",
            b"1",
            b'"text"',
            b"\n",
            b"PK\x05\x06" + bytes(18),
            b"\x93NUMPY",
            b"\x89PNG\r\n\x1a\n",
            b"\x1f\x8b\x08\0",
            pickle.dumps({}),
            rng.randbytes(500),
            b"[" * values.DEEP,
            b'{"a":' * values.DEEP,
            bomb_of_aliases(),
            canary(rng),
        )
    )


BYTES: tuple[Damage, ...] = (flipped, flipped, flipped, cut, cut, moved, numbered, followed, strange)


# --- what would run, if anything did

CANARY = "touch ../outside/ran"


class _Runs:
    def __init__(self, name: str, *words: Any) -> None:
        self.name, self.words = name, words

    def __reduce__(self) -> Any:
        import builtins
        import os

        return getattr(builtins if self.name in ("exec", "eval", "open") else os, self.name), self.words


def canary(rng: random.Random) -> bytes:
    """A pickle that runs something where it is loaded."""
    harm = rng.choice(
        (
            _Runs("system", CANARY),
            _Runs("exec", "open('../outside/ran', 'w')"),
            _Runs("open", "../outside/ran", "w"),
            _Runs("mkdir", "../outside/ran"),
        )
    )
    content = rng.choice((harm, {b"data": harm, b"labels": [1]}, [harm], {"clean_label": harm}))
    return pickle.dumps(content, rng.choice((0, 2, 4)))


def bomb_of_aliases() -> bytes:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{k}: &a{k} [{', '.join([f'*a{k - 1}'] * 9)}]" for k in range(1, 12)]
    return "\n".join(lines).encode()


def bomb_of_merges() -> bytes:
    """Tables merged into each other: nine times as many names with each line."""
    lines = ["a0: &a0 {x: 1}"]
    lines += [f"a{k}: &a{k} {{<<: [{', '.join([f'*a{k - 1}'] * 9)}]}}" for k in range(1, 12)]
    return "\n".join(lines).encode()


YAML_ODD = ("*nowhere", "&a [*a]", "{", "2026-11-15", "0o17", "1_000", ".nan", "!!binary x", "<<: 1")
YAML_HARM = (
    '!!python/object/apply:os.system ["touch ../outside/ran"]',
    '!!python/object/new:os.system ["touch ../outside/ran"]',
    "!!python/name:os.system",
    "!!python/object/apply:builtins.exec [\"open('../outside/ran', 'w')\"]",
)


# --- trees: JSON, JSON lines, YAML


def _nodes(tree: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [place]
    below = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, one in below:
        found += _nodes(one, (*place, key))
    return found


def replanted(rng: random.Random, tree: Any) -> Any:
    """One node is another value, left out, named otherwise, doubled or wrapped."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        *above, last = (None, *rng.choice(_nodes(tree)))
        if not above:
            return values.value(rng)
        spot = tree
        for key in above[1:]:
            spot = spot[key]
        kind = rng.random()
        if kind < 0.65:
            spot[last] = values.value(rng)
        elif kind < 0.75:
            del spot[last]
        elif kind < 0.85:
            spot[last] = rng.choice(([spot[last]], {"a": spot[last]}, str(spot[last])))
        elif isinstance(spot, dict):
            spot[values.words(rng)] = spot.pop(last) if kind < 0.95 else values.value(rng)
        else:
            spot.insert(rng.randrange(len(spot) + 1), values.value(rng))
    return tree


def _json(tree: Any, **how: Any) -> bytes:
    return json.dumps(tree, **how).encode(errors="surrogatepass")


def json_damaged(rng: random.Random, content: bytes) -> bytes:
    return _json(replanted(rng, json.loads(content)), ensure_ascii=rng.random() < 0.5)


def lines_damaged(rng: random.Random, content: bytes) -> bytes:
    """A record of JSON lines is another; or lines are left out, doubled, in another order."""
    lines = content.splitlines(keepends=True) or [b"{}\n"]
    place, kind = rng.randrange(len(lines)), rng.random()
    if kind < 0.7:
        lines[place] = _json(replanted(rng, json.loads(lines[place])), ensure_ascii=rng.random() < 0.5) + b"\n"
    elif kind < 0.8:
        del lines[place]
    elif kind < 0.9:
        lines.insert(place, rng.choice((lines[place], b"\n", b"null\n", b"\xff\n", b"[" * values.DEEP + b"\n")))
    else:
        rng.shuffle(lines)
    return b"".join(lines)


def yaml_damaged(rng: random.Random, content: bytes) -> bytes:
    kind = rng.random()
    if kind < 0.02:
        return rng.choice((bomb_of_merges(), content + content))  # the second has each name twice
    if kind < 0.2:
        lines = content.decode().splitlines()
        place = rng.randrange(len(lines))
        head = lines[place].partition(":")[0]
        lines[place] = f"{head}: {rng.choice((*YAML_HARM, *YAML_ODD))}"
        return "\n".join(lines).encode()
    tree = replanted(rng, yaml.safe_load(content))
    try:
        return yaml.safe_dump(tree, sort_keys=False, allow_unicode=True).encode()
    except (yaml.YAMLError, UnicodeEncodeError, ValueError):
        return _json(tree)


# --- tables


def csv_damaged(rng: random.Random, content: bytes) -> bytes:
    text = content.decode()
    mark = "\t" if "\t" in text else ","
    rows = list(csv.reader(io.StringIO(text), delimiter=mark)) or [[]]
    for _ in range(rng.choice((1, 1, 2, 4))):
        row = rng.choice(rows)
        kind = rng.random()
        if kind < 0.55 and row:
            row[rng.randrange(len(row))] = values.words(rng)
        elif kind < 0.65 and row:
            del row[rng.randrange(len(row))]
        elif kind < 0.75:
            row.insert(rng.randrange(len(row) + 1), values.words(rng))
        elif kind < 0.85:
            rows.insert(rng.randrange(len(rows) + 1), list(row))
        else:
            column = rng.randrange(len(rows[0])) if rows[0] else 0
            for one in rows:
                del one[column : column + 1]
    out = io.StringIO()
    quoting = rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONE))
    try:
        csv.writer(
            out, delimiter=mark, quoting=quoting, lineterminator=rng.choice(("\n", "\r\n", "\r")), escapechar="\\"
        ).writerows(rows)
    except csv.Error:
        return content[:-1] + b'"'
    if rng.random() < 0.1:
        return out.getvalue().encode(rng.choice(("utf-16", "utf-32", "utf-8-sig", "utf-7")), errors="ignore")
    return out.getvalue().encode(errors=rng.choice(("surrogatepass", "ignore")))


def text_damaged(rng: random.Random, content: bytes) -> bytes:
    lines = content.decode().splitlines()
    place = rng.randrange(len(lines)) if lines else 0
    lines[place : place + rng.choice((0, 1))] = [values.words(rng)]
    return "\n".join(lines).encode(errors="surrogatepass")


# --- arrays and archives


def npy_damaged(rng: random.Random, content: bytes) -> bytes:
    """A header that lies."""
    array = np.load(io.BytesIO(content), allow_pickle=False)
    shape = rng.choice(
        (
            repr(array.shape),
            "(10**12,)",
            "(99999999999, 3, 8, 8)",
            "(-1,)",
            "()",
            "(0,)",
            "(2, 0, 3)",
            "(True, 3)",
            "(1,) * 40",
            "[3]",
            "3",
            str((1,) * 70),
            str((2**62, 4)),
        )
    )
    descr = rng.choice(
        (
            repr(array.dtype.str),
            "'|O'",
            "'<U1000000000'",
            "'>f8'",
            "'<M8[s]'",
            "'|V8'",
            "'<c16'",
            "'|S0'",
            "[('a', '<i4')]",
            "[('a', '|O')]",
            "'<f16'",
            "'|b1'",
            "'<f2'",
            "None",
            "1",
            "'x'",
            "('<i4', (3,))",
            "{'names': ['a'], 'formats': ['<i4']}",
        )
    )
    fortran = rng.choice(("False", "True", "None", "0"))
    head = f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}"
    if rng.random() < 0.1:
        head = rng.choice(
            (
                "{" * 5000,
                "(" * 5000,
                "__import__('os').system('touch ../outside/ran')",
                "",
                "{}",
                "{'descr': 1}",
                "\0",
                "1" * 10000,
            )
        )
    raw = head.encode()
    body = canary(rng) if "O" in descr and rng.random() < 0.8 else array.tobytes()
    version = rng.choice(((1, 0), (1, 0), (2, 0), (3, 0), (9, 9)))
    length = struct.pack("<H", min(len(raw), 65535)) if version == (1, 0) else struct.pack("<I", len(raw))
    return b"\x93NUMPY" + bytes(version) + length + raw + body


def zip_damaged(rng: random.Random, content: bytes) -> bytes:
    """A member is damaged inside, named otherwise, doubled, left out, packed otherwise; or the directory lies."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(entry.filename, archive.read(entry)) for entry in archive.infolist()]
    place, kind = rng.randrange(len(members)), rng.random()
    name, inner = members[place]
    if kind < 0.55:
        if name.endswith(".npy"):
            inner = npy_damaged(rng, inner) if rng.random() < 0.75 else rng.choice(BYTES)(rng, inner)
        elif name.endswith(".pkl"):
            inner = pickle_damaged(rng, inner)
        else:
            inner = rng.choice(BYTES)(rng, inner)
        members[place] = name, inner
    elif kind < 0.65:
        members[place] = rng.choice(("../x.npy", "/etc/x", "", "\x1b[2J.npy", "a" * 60000, "labels.npy", "x/../../y.npy")), inner
    elif kind < 0.72:
        members.append(members[place])
    elif kind < 0.8:
        del members[place]
    elif kind < 0.85:
        members[place] = name, inner + bytes(50 * 2**20)
    out = io.BytesIO()
    packed = rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA))
    with zipfile.ZipFile(out, "w", packed) as archive:
        for one, inner in members:
            with _quiet():
                archive.writestr(one, inner)
    found = out.getvalue()
    if kind >= 0.85:  # the directory at the end says how, how much and where
        directory = bytearray(found)
        start = found.index(b"PK\x01\x02")
        for _ in range(rng.choice((1, 1, 2))):
            directory[start + rng.randrange(len(found) - start)] = rng.choice((*ODD, rng.randrange(256)))
        found = bytes(directory)
    return found


def _quiet() -> Any:
    import warnings

    return warnings.catch_warnings(action="ignore")


def tensors_damaged(rng: random.Random, content: bytes) -> bytes:
    """The header of a safetensors file: its length, and the JSON in it."""
    length = int.from_bytes(content[:8], "little")
    head, body = content[8 : 8 + length], content[8 + length :]
    kind = rng.random()
    if kind < 0.2:
        return (
            rng.choice((0, 1, length - 1, length + 1, len(content), 2**40, 2**63, 2**64 - 1)).to_bytes(8, "little") + head + body
        )
    if kind < 0.3:  # values that are none
        place, number = rng.randrange(max(1, len(body) - 400)) & ~3, rng.choice((b"\0\0\xc0\x7f", b"\0\0\x80\xff"))
        return content[: 8 + length] + body[:place] + number * 100 + body[place + 400 :]
    tree = replanted(rng, json.loads(head))
    if kind > 0.6 and isinstance(tree, dict) and tree:
        name = rng.choice(list(tree))
        if isinstance(tree[name], dict):
            tree[name][rng.choice(("dtype", "shape", "data_offsets"))] = rng.choice(
                ("F64", "I64", "BOOL", "F8_E4M3", "X", [], [0], [2**62, 4], [-1], [0, 0], [4, 0], [0, 2**63], None, [1.5])
            )
    raw = _json(tree)
    return len(raw).to_bytes(8, "little") + raw + body


def gzip_damaged(rng: random.Random, content: bytes) -> bytes:
    inner = gzip.decompress(content)
    if rng.random() < 0.1:
        inner = inner + bytes(200 * 2**20)
    return gzip.compress(rng.choice(BYTES)(rng, inner), 6, mtime=0)


OPCODES = bytes(range(256))


def pickle_damaged(rng: random.Random, content: bytes) -> bytes:
    """Other opcodes, other lengths, things that run, things that never end."""
    kind = rng.random()
    if kind < 0.2:
        return canary(rng)
    if kind < 0.3:  # tuples doubled: 2^60 of them in a few hundred bytes
        doubled = b"(" + b"".join(b"h" + bytes([k]) + b"h" + bytes([k]) + b"\x86q" + bytes([k + 1]) for k in range(60))
        return b"\x80\x02)q\0" + doubled + rng.choice((b"t.", b"0}h\x3cK\1s.", b"h\x3c}."))
    if kind < 0.4:
        return b"\x80\x02" + rng.choice(
            (
                b"]" * 50_000 + b".",
                b"(" * 50_000 + b"t" * 50_000 + b".",
                b"}q\0h\0h\0s.",
                b"]q\0h\0a.",
                b"\x8a\xff" + b"\xff" * 255 + b".",
            )
        )
    found = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 5))):
        place = rng.randrange(min(len(found), rng.choice((100, 1000, len(found)))))
        found[place] = rng.choice((rng.choice(pickle_codes()), rng.randrange(256), rng.choice(ODD)))
    return bytes(found)


def pickle_codes() -> bytes:
    import pickletools

    return b"".join(one.code.encode("latin-1") for one in pickletools.opcodes)


# --- pictures


def picture_damaged(rng: random.Random, content: bytes) -> bytes:
    if not content.startswith(b"\x89PNG"):
        return rng.choice((flipped, flipped, numbered, moved, cut))(rng, content)
    chunks, place = [], 8
    while place + 8 <= len(content):
        length = int.from_bytes(content[place : place + 4], "big")
        chunks.append((content[place + 4 : place + 8], content[place + 8 : place + 8 + length]))
        place += 12 + length
    kind = rng.random()
    if kind < 0.3:
        side = rng.choice((0, 1, 9000, 9500, 20_000, 65_535, 2**31 - 1, 2**32 - 1))
        chunks[0] = chunks[0][0], struct.pack(">II", side, rng.choice((1, side))) + chunks[0][1][8:]
    elif kind < 0.5:
        chunks[0] = (
            chunks[0][0],
            chunks[0][1][:8]
            + bytes([rng.choice((1, 2, 4, 8, 16, 0, 255)), rng.choice((0, 2, 3, 4, 6, 9)), 0, 0, rng.choice((0, 1, 7))]),
        )
    elif kind < 0.7:
        text = zlib.compress(bytes(100 * 2**20 if rng.random() < 0.1 else 1000))
        chunks.insert(
            1,
            rng.choice(
                (
                    (b"zTXt", b"a\0\0" + text),
                    (b"iCCP", b"a\0\0" + text),
                    (b"eXIf", rng.randbytes(60)),
                    (b"PLTE", b"\0" * 7),
                    (b"tRNS", b"\0" * 300),
                    (b"acTL", struct.pack(">II", 2**31, 0)),
                    (b"iTXt", b"a\0\1\0\0\0" + text),
                )
            ),
        )
    elif kind < 0.85:
        rng.shuffle(chunks)
    else:
        chunks[-2 if len(chunks) > 1 else 0] = b"IDAT", zlib.compress(bytes(rng.choice((0, 1, 30 * 2**20))))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body)) for name, body in chunks
    )


# --- by the file's name

BY_END: dict[str, tuple[Damage, ...]] = {
    ".json": (json_damaged,),
    ".jsonl": (lines_damaged,),
    ".yaml": (yaml_damaged,),
    ".csv": (csv_damaged,),
    ".tsv": (csv_damaged,),
    ".txt": (text_damaged,),
    ".npy": (npy_damaged,),
    ".npz": (zip_damaged,),
    ".pt": (zip_damaged, pickle_damaged),
    ".pth": (zip_damaged, pickle_damaged),
    ".safetensors": (tensors_damaged,),
    ".gz": (gzip_damaged,),
    ".png": (picture_damaged,),
}


def damaged(rng: random.Random, name: str, content: bytes) -> bytes:
    """The file damaged in one way; the way for its kind in two of three cases."""
    end = name[name.rfind(".") :] if "." in name.rpartition("/")[2] else ""
    own = BY_END.get(end, ())
    if "batch" in name or end == ".meta":
        own = (pickle_damaged,)
    if own and rng.random() < 0.67:
        try:
            return rng.choice(own)(rng, content)
        except (
            ValueError,
            zipfile.BadZipFile,
            UnicodeDecodeError,
            csv.Error,
            KeyError,
            IndexError,
            struct.error,
            OverflowError,
            OSError,
            yaml.YAMLError,
        ):
            pass  # the file is of another form than its name says
    return rng.choice(BYTES)(rng, content)
