# SPDX-License-Identifier: Apache-2.0
"""CPython's own objects: instances, dicts, lists, tuples and strings, made, kept, dropped.

Most of them live in CPython's own arenas; what is larger than 512 bytes goes to malloc.
Usage: objects.py [SCALE]"""

import region

FULL_ROUNDS = 60


class Record:
    def __init__(self, number, tags):
        self.number = number
        self.name = f"record-{number}"
        self.tags = tags
        self.links = {}


def build_records(n):
    records = [Record(i, [str(i % 17), "x" * (i % 64), (i, i + 1)]) for i in range(n)]
    for i, record in enumerate(records):
        record.links[records[i * 7 % n].name] = i
        record.links["self"] = record.name
    return records


def index_words(records):
    words = {}
    for record in records:
        for word in f"{record.name} {' '.join(record.tags[:2])}".split():
            words.setdefault(word, []).append(record.number)
    return words


def join_text(records):
    """Strings of 600 bytes and more: past CPython's small-object limit, so malloc's."""
    chunks = (records[i : i + 60] for i in range(0, len(records), 60))
    return sum(len(",".join(record.name for record in chunk)) for chunk in chunks)


def main():
    checksum = 0
    kept = []
    with region.measured():
        for _ in range(max(1, round(region.scale() * FULL_ROUNDS))):
            records = build_records(12_000)
            words = index_words(records)
            checksum += len(words) + join_text(records)
            kept = kept[-3:] + [sorted(words, key=len)]
    print(checksum, len(kept))


main()
