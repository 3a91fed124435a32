# SPDX-License-Identifier: Apache-2.0
"""TFRecord files are read and written as a writer in plain Python does it, packed by gzip and zlib or
not; Examples as protobuf has them."""

import gzip
import random
import struct
import zlib

import pytest
from google.protobuf.internal import api_implementation
from google.protobuf.message import DecodeError

from examples import Example, SequenceExample


@pytest.fixture(scope="session")
def record_tool(build_tool):
    return build_tool("record_tool")


# ---- files of records ----


def make_table():
    table = []
    for number in range(256):
        for _ in range(8):
            number = number >> 1 ^ (0x82F63B78 if number & 1 else 0)
        table.append(number)
    return table


TABLE = make_table()


def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def framed(data):
    length = struct.pack("<Q", len(data))
    return (length + struct.pack("<I", masked_crc(length)) + data
            + struct.pack("<I", masked_crc(data)))


def as_list(strings):
    return b"".join(struct.pack("<Q", len(data)) + data for data in strings)


def of_list(data):
    strings, at = [], 0
    while at < len(data):
        (n,) = struct.unpack_from("<Q", data, at)
        strings.append(data[at + 8 : at + 8 + n])
        at += 8 + n
    return strings


def some_records(seed, n=40, longest=3000):
    chance = random.Random(seed)
    lengths = [chance.choice([0, 1, 7, 50, chance.randrange(longest)]) for _ in range(n)]
    return [bytes(chance.choices(b"abcdefgh\0\xff", k=length)) for length in lengths]


def pack(packing, data):
    if packing == "gzip":
        return gzip.compress(data)
    if packing == "members":  # several, as `cat a.gz b.gz` makes them
        cut = len(data) // 3 + 1
        return b"".join(gzip.compress(data[at : at + cut]) for at in range(0, len(data), cut))
    return zlib.compress(data) if packing == "zlib" else data


def read(tool, folder, data, packing="auto", window=0):
    """The good records, how many were bad, whether it came to the end, and the first error."""
    path, out = folder / "records", folder / "list"
    path.write_bytes(data)
    (said,) = tool(["read", packing, window, path, out])
    word, n_good, n_bad, end, why = said.split(" ", 4)
    assert word == "ok"
    records = of_list(out.read_bytes())
    assert len(records) == int(n_good)
    return records, int(n_bad), end, why


@pytest.mark.parametrize("window", [16, 100, 4096, 0, 1 << 20])
@pytest.mark.parametrize("packing", ["none", "gzip", "members", "zlib"])
def test_records_are_read_as_python_wrote_them(record_tool, tmp_path, packing, window):
    records = some_records(window)
    data = pack(packing, b"".join(map(framed, records)))
    assert read(record_tool, tmp_path, data, window=window) == (records, 0, "end", "")


def test_records_are_written_as_python_writes_them(record_tool, tmp_path):
    records = some_records(1)
    (tmp_path / "list").write_bytes(as_list(records))
    assert record_tool(["write", tmp_path / "list", tmp_path / "out"]) == ["ok"]
    assert (tmp_path / "out").read_bytes() == b"".join(map(framed, records))


def test_a_bad_record_costs_one_record(record_tool, tmp_path):
    records = some_records(2)
    frames = [bytearray(framed(data)) for data in records]
    for bad in (3, 20, 21):
        frames[bad][-1] ^= 1
    good = [data for number, data in enumerate(records) if number not in (3, 20, 21)]
    found, n_bad, end, why = read(record_tool, tmp_path, b"".join(frames), window=500)
    assert (found, n_bad, end) == (good, 3, "end")
    offset = sum(map(len, frames[:3]))
    assert why.startswith(f"record 3 of '{tmp_path}/records': the data of the record at byte {offset} ")


def test_a_bad_length_costs_what_follows_and_says_so(record_tool, tmp_path):
    records = some_records(3)
    frames = [bytearray(framed(data)) for data in records]
    frames[7][0] ^= 1
    found, n_bad, end, why = read(record_tool, tmp_path, b"".join(frames))
    assert (found, n_bad, end) == (records[:7], 1, "lost")
    assert "no record behind it can be found" in why


def test_records_before_the_end_of_a_cut_gzip_file_are_read(record_tool, tmp_path):
    records = some_records(4, 300)
    data = gzip.compress(b"".join(map(framed, records)))
    found, n_bad, end, why = read(record_tool, tmp_path, data[: len(data) // 2])
    assert found == records[: len(found)] and len(found) > 50
    assert (n_bad, end) == (1, "lost")
    assert f"is cut off, at packed byte {len(data) // 2} and unpacked byte " in why


# ---- Examples ----


def hexed(data):
    return "x" + data.hex()


def text_of(feature):
    kind = feature.WhichOneof("kind")
    if kind == "bytes_list":
        return " ".join(["bytes", *map(hexed, feature.bytes_list.value)])
    if kind == "float_list":
        floats = (struct.pack("<f", value) for value in feature.float_list.value)
        return " ".join(["floats", *map(hexed, floats)])
    if kind == "int64_list":
        return " ".join(["int64s", *map(str, feature.int64_list.value)])
    return "nothing"


def lines_of(message):
    """What the tool says of it, but for the order."""
    features = message.features if hasattr(message, "features") else message.context
    lines = {f"feature {hexed(name.encode())} {text_of(feature)}"
             for name, feature in features.feature.items()}
    if hasattr(message, "feature_lists"):
        for name, steps in message.feature_lists.feature_list.items():
            said = "".join(f" step {text_of(step)}" for step in steps.feature)
            lines.add(f"list {hexed(name.encode())}{said}")
    return lines


def fill_feature(feature, chance):
    kind, n = chance.randrange(4), chance.choice([0, 1, 2, 5, 40])
    if kind == 0:
        feature.bytes_list.SetInParent()
        feature.bytes_list.value.extend(chance.randbytes(chance.randrange(200)) for _ in range(n))
    elif kind == 1:
        feature.float_list.SetInParent()
        feature.float_list.value.extend(chance.uniform(-1e6, 1e6) for _ in range(n))
    elif kind == 2:
        feature.int64_list.SetInParent()
        bits = chance.choice([3, 8, 20, 63])
        feature.int64_list.value.extend(chance.randrange(-(1 << bits), 1 << bits) for _ in range(n))


def random_name(chance):
    return "".join(chance.choices("abc/_é∀", k=chance.choice([0, 1, 5, 20])))


def random_example(seed, kind=Example):
    chance = random.Random(seed)
    message = kind()
    features = message.features if kind is Example else message.context
    features.SetInParent()
    for _ in range(chance.randrange(6)):
        fill_feature(features.feature[random_name(chance)], chance)
    if kind is SequenceExample:
        message.feature_lists.SetInParent()
        for _ in range(chance.randrange(4)):
            steps = message.feature_lists.feature_list[random_name(chance)]
            for _ in range(chance.randrange(5)):
                fill_feature(steps.feature.add(), chance)
    return message


def look(tool, folder, records):
    """The lines of each record, as a dict by part and name: of a name that comes again, the last."""
    commands = []
    for number, record in enumerate(records):
        (folder / f"{number}").write_bytes(record)
        commands.append(["example", folder / f"{number}", folder / f"{number}.text"])
    found = []
    for number, said in enumerate(tool(*commands)):
        if said != "ok":
            found.append(said)
            continue
        lines = (folder / f"{number}.text").read_text().splitlines()
        found.append(set({tuple(line.split(" ", 2)[:2]): line for line in lines}.values()))
    return found


@pytest.mark.parametrize("kind", [Example, SequenceExample], ids=lambda kind: kind.__name__)
def test_an_example_has_the_values_that_protobuf_reads(record_tool, tmp_path, kind):
    messages = [random_example(seed, kind) for seed in range(150)]
    found = look(record_tool, tmp_path, [message.SerializeToString() for message in messages])
    assert found == list(map(lines_of, messages))


@pytest.mark.parametrize("kind", [Example, SequenceExample], ids=lambda kind: kind.__name__)
def test_an_example_is_written_as_protobuf_writes_it(record_tool, tmp_path, kind):
    commands, wanted = [], []
    for seed in range(100):
        wanted.append(random_example(seed, kind).SerializeToString(deterministic=True))
        path = tmp_path / str(seed)
        path.write_bytes(wanted[-1])
        word = "rewrite" if kind is Example else "rewrite2"
        commands.append([word, path, tmp_path / f"{seed}.again"])
    assert set(record_tool(*commands)) == {"ok"}
    assert [(tmp_path / f"{seed}.again").read_bytes() for seed in range(100)] == wanted


def test_messages_in_parts_are_merged_as_protobuf_merges_them(record_tool, tmp_path):
    """A message behind another of its kind is one with it; also in their middle, which is where the
    lists of a feature and the values of an entry come in parts."""
    records = []
    for seed in range(150):
        chance = random.Random(seed)
        parts = [random_example(chance.randrange(40), SequenceExample) for _ in range(3)]
        records.append(b"".join(part.SerializeToString() for part in parts))
    wanted = [lines_of(SequenceExample.FromString(record)) for record in records]
    assert look(record_tool, tmp_path, records) == wanted


def field(number, data):
    assert len(data) < 128
    return bytes([number << 3 | 2, len(data)]) + data


def small_feature(chance):
    kind = chance.randrange(1, 4)
    values = {1: field(1, b"ab"), 2: field(1, struct.pack("<f", chance.random())),
              3: chance.choice([field(1, bytes([5, 6])), b"\x08\x07"])}
    unknown = chance.choice([b"", b"\x48\x05", b"\x4b\x08\x01\x4c", field(9, b"x")])
    return field(kind, values[kind] + unknown) + unknown


def test_lists_and_values_in_parts_are_merged_as_protobuf_merges_them(record_tool, tmp_path):
    records = []
    for seed in range(400):
        chance = random.Random(seed)
        parts = [field(1, chance.choice([b"x", b"y"]))]
        parts += [field(2, small_feature(chance) + chance.choice([b"", small_feature(chance)]))
                  for _ in range(chance.randrange(4))]
        chance.shuffle(parts)
        records.append(field(1, field(1, b"".join(parts))))
    wanted = [lines_of(Example.FromString(record)) for record in records]
    assert look(record_tool, tmp_path, records) == wanted


def has_bad_name(lines):
    for line in lines:
        try:
            bytes.fromhex(line.split(" ")[1][1:]).decode()
        except UnicodeDecodeError:
            return True
    return False


# What protobuf skips, and we refuse: its implementation in Python, which is what sid has, also fields
# whose number no message can have.
TAKEN_BY_PROTOBUF = ["has wire type"]
if api_implementation.Type() == "python":
    TAKEN_BY_PROTOBUF.append("has a number that there is not")


def parsed(record):
    try:
        return lines_of(Example.FromString(record))
    except (DecodeError, UnicodeDecodeError):  # protobuf in Python says so of a name
        return None


def test_what_protobuf_cannot_parse_is_refused(record_tool, tmp_path):
    """But for names that are no UTF-8, which are names here; and fields of another type, which
    protobuf skips, are refused."""
    records = []
    for seed in range(400):
        chance = random.Random(seed)
        record = bytearray(random_example(seed % 50).SerializeToString())
        if chance.random() < 0.5:
            del record[chance.randrange(len(record)) :]
        else:
            record[chance.randrange(min(len(record), 40))] ^= 1 << chance.randrange(8)
        records.append(bytes(record))
    n_refused = 0
    for ours, theirs in zip(look(record_tool, tmp_path, records), map(parsed, records)):
        if isinstance(ours, str):
            assert ours.startswith("refused PL_ECORRUPT") and ours.endswith(" of the record")
            assert theirs is None or any(words in ours for words in TAKEN_BY_PROTOBUF)
            n_refused += 1
        else:
            assert ours == theirs or (theirs is None and has_bad_name(ours))
    assert n_refused > 50
