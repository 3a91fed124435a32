# SPDX-License-Identifier: Apache-2.0
"""Each stage by itself: elements, specs, cardinalities and refusals as tf.data's documentation has
them, and errors at their places."""

import ctypes

import numpy as np
import pytest
import sources
from datasets import (AUTO, I64, INFINITE, UNKNOWN, Stage, everything, from_generator, from_range,
                      from_slices, from_tensors)  # fmt: skip
from sources import base

Refused = base.Refused


@pytest.fixture
def ten(runtime):
    return from_range(runtime, 10)


def ragged(runtime, lengths):
    return from_range(runtime, len(lengths)).map(
        lambda i: (np.arange(lengths[i], dtype="i4") + 1,), [("int32", (None,))])


def same(found, wanted):
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted):
        np.testing.assert_array_equal(one, other)


# Cardinalities


def test_cardinalities_are_those_of_tf_data(runtime, ten):
    endless = ten.repeat()
    unknown = ten.filter(lambda x: True)
    lanes = ten.flat_map(lambda x: from_range(runtime, 2))
    for dataset, wanted in [
            (ten.take(3), 3), (ten.take(99), 10), (ten.take(-1), 10), (endless.take(4), 4),
            (endless.take(-1), INFINITE), (unknown.take(4), UNKNOWN), (ten.skip(3), 7),
            (ten.skip(99), 0), (ten.skip(-1), 0), (endless.skip(3), INFINITE),
            (unknown.skip(3), UNKNOWN), (ten.repeat(3), 30), (ten.repeat(0), 0),
            (ten.take(0).repeat(), 0), (endless, INFINITE), (unknown.repeat(2), UNKNOWN),
            (unknown.repeat(), INFINITE), (unknown.repeat(0), 0), (ten.zip(ten.take(4)), 4),
            (ten.zip(endless), 10), (endless.zip(endless), INFINITE), (ten.zip(unknown), UNKNOWN),
            (ten.concatenate(ten), 20), (ten.concatenate(endless), INFINITE),
            (unknown.concatenate(endless), INFINITE), (unknown.concatenate(ten), UNKNOWN),
            (ten.shard(3, 0), 4), (ten.shard(3, 1), 3), (endless.shard(3, 1), INFINITE),
            (ten.shuffle(3), 10), (ten.enumerate(), 10), (lanes, UNKNOWN), (unknown, UNKNOWN),
            (ten.window(3), 4), (ten.window(3, drop_remainder=True), 3), (ten.window(3, 1, 2), 10),
            (ten.window(3, 1, 2, drop_remainder=True), 6), (ten.window(11, drop_remainder=True), 0),
            (endless.window(3), INFINITE), (unknown.window(3), UNKNOWN), (ten.batch(4), 3),
            (ten.batch(4, True), 2), (ten.batch(5, True).unbatch(), 10),
            (ten.batch(5).unbatch(), UNKNOWN), (endless.batch(5).unbatch(), INFINITE),
            (ten.padded_batch(4), 3), (ten.padded_batch(4, drop_remainder=True), 2),
            (ten.scan([np.int64(0)], lambda s, x: (s, x), [I64, I64]), 10),
            (from_generator(runtime, lambda: []), UNKNOWN),
    ]:  # fmt: skip
        assert dataset.cardinality == wanted


def test_what_has_a_cardinality_has_so_many_elements(runtime, ten):
    for size, shift, stride, drop in [(3, 3, 1, False), (3, 1, 2, True), (2, 5, 3, False),
                                      (4, 2, 1, True), (1, 1, 1, False)]:  # fmt: skip
        windows = ten.window(size, shift, stride, drop)
        assert len(list(windows)) == windows.cardinality
    for index in range(4):
        assert len(list(ten.shard(4, index))) == ten.shard(4, index).cardinality


# Specs


def test_specs_say_what_is_known_before(runtime, ten):
    rows = from_slices(runtime, np.zeros((4, 3, 2), "f4"), np.arange(4))
    assert rows.batch(2).specs == [("float32", (None, 3, 2)), (I64, (None,))]
    assert rows.batch(2, True).unbatch().specs == [("float32", (3, 2)), (I64, ())]
    assert ten.window(3).specs == [[(I64, ())]]
    assert rows.window(3).specs == [[("float32", (3, 2))], [(I64, ())]]
    assert ten.zip(rows).specs == [(I64, ()), ("float32", (3, 2)), (I64, ())]
    assert rows.enumerate().specs == [(I64, ()), ("float32", (3, 2)), (I64, ())]
    other = from_slices(runtime, np.zeros((4, 5, 2), "f4"), np.arange(4))
    assert rows.concatenate(other).specs == [("float32", (None, 2)), (I64, ())]
    flat = from_slices(runtime, np.zeros((4, 5), "f4"), np.arange(4))
    assert rows.concatenate(flat).specs == [("float32", None), (I64, ())]
    lanes = ten.flat_map(lambda x: rows, [("float32", (3, None)), I64])
    assert lanes.specs == [("float32", (3, None)), (I64, ())]
    padded = ragged(runtime, [1, 2]).padded_batch(2, [(7,)], drop_remainder=True)
    assert padded.specs == [("int32", (2, 7))]
    assert ragged(runtime, [1, 2]).padded_batch(2).specs == [("int32", (None, None))]
    assert ten.shuffle(3).specs == ten.take(1).specs == ten.repeat().specs == [(I64, ())]


# Edges


def test_take_and_skip_know_their_ends(ten):
    assert list(ten.take(0)) == []
    assert list(ten.take(3)) == [0, 1, 2]
    assert list(ten.take(-1)) == list(ten)
    assert list(ten.skip(8)) == [8, 9]
    assert list(ten.skip(-1)) == list(ten.skip(11)) == []
    assert list(ten.skip(4).take(3).skip(1)) == [5, 6]


def test_an_endless_repeat_of_nothing_ends(ten):
    assert list(ten.take(0).repeat()) == []
    assert list(ten.filter(lambda x: False).repeat()) == []
    assert list(ten.repeat().skip(25).take(7)) == [5, 6, 7, 8, 9, 0, 1]


def test_interleave_takes_blocks_in_turn_as_tf_data_documents(runtime):
    """The example of tf.data.Dataset.interleave's documentation."""
    five = from_range(runtime, 1, 6)
    for n_parallel in (1, 2, 5, AUTO):
        found = five.interleave(lambda x: from_tensors(runtime, x).repeat(6), [I64], 2, 4, n_parallel)
        assert list(found) == [1] * 4 + [2] * 4 + [1] * 2 + [2] * 2 + [3] * 4 + [4] * 4 + [
            3] * 2 + [4] * 2 + [5] * 6


def test_interleaved_rows_may_end_at_once_or_never(runtime, ten):
    def lane(x):
        made = from_range(runtime, int(x), int(x) + 1)
        return made.repeat() if x == 7 else made.take(0)

    for n_parallel in (1, 3):
        assert list(ten.interleave(lane, [I64], 3, 2, n_parallel).take(5)) == [7] * 5


def test_a_million_lanes_are_opened_only_as_they_are_needed(runtime):
    opened = []

    def lane(x):
        opened.append(x)
        return from_range(runtime, 100)

    many = from_range(runtime, 1000000).interleave(lane, [I64], 4, 1, 2)
    assert len(list(many.take(10))) == 10
    assert len(opened) < 20


def test_windows_are_datasets_of_each_component(runtime):
    rows = from_slices(runtime, np.arange(5), np.arange(10.0).reshape(5, 2))
    found = list(rows.window(2, drop_remainder=True))
    assert [numbers for numbers, _ in found] == [[0, 1], [2, 3]]
    same([np.array(x) for _, x in found], [np.arange(4.0).reshape(2, 2),
                                           np.arange(4.0, 8).reshape(2, 2)])
    batched = rows.window(2, 1).flat_map(lambda a, b: a.zip(b).batch(2),
                                         [(I64, (None,)), ("float64", (None, 2))])
    same([a for a, _ in batched], [[0, 1], [1, 2], [2, 3], [3, 4], [4]])


def test_padded_batches_are_filled_up(runtime):
    lengths = [1, 3, 0, 2, 5]
    same(list(ragged(runtime, lengths).padded_batch(3)),
         [[[1, 0, 0], [1, 2, 3], [0, 0, 0]], [[1, 2, 0, 0, 0], [1, 2, 3, 4, 5]]])
    filled = ragged(runtime, lengths).padded_batch(2, [(6,)], [np.int32(-7)], True)
    same(list(filled), [[[1] + [-7] * 5, [1, 2, 3, -7, -7, -7]], [[-7] * 6, [1, 2] + [-7] * 4]])


def test_padded_batches_of_any_rank_are_what_numpy_pads(runtime):
    rng = np.random.default_rng(1)
    arrays = [rng.normal(size=rng.integers(0, 5, 3)).astype("f4") for _ in range(7)]
    given = from_range(runtime, 7).map(lambda i: (arrays[i].transpose(2, 0, 1),),
                                       [("float32", (None, None, None))])
    (found,) = given.padded_batch(7, values=[np.float32(2.5)])
    turned = [array.transpose(2, 0, 1) for array in arrays]
    most = np.max([array.shape for array in turned], axis=0)
    wanted = np.full((7, *most), 2.5, "f4")
    for i, array in enumerate(turned):
        wanted[i][tuple(slice(n) for n in array.shape)] = array
    np.testing.assert_array_equal(found, wanted)


def test_slices_of_a_file_are_padded_without_reading_it_whole(tmp_path):
    rows = np.arange(40 * 12500.0).reshape(40, 12500)
    np.save(tmp_path / "rows.npy", rows)
    with base.Runtime(cap_bytes=1 << 20, spill=tmp_path) as small, \
            small.open(tmp_path / "rows.npy") as tensor, \
            Stage("from_slices", small, base.pointers([tensor]), 1) as slices, \
            slices.padded_batch(3, [(12501,)]) as padded:  # fmt: skip
        same([batch[:, :-1] for batch in padded], [rows[i:i + 3] for i in range(0, 40, 3)])


def test_strings_are_padded_unbatched_and_shuffled(runtime):
    words = [[b"a"], [], [b"bc", b"", b"d" * 50]]
    given = from_range(runtime, 3).map(lambda i: (np.array(words[i], object),),
                                       [("string", (None,))])
    (found,) = given.padded_batch(3, values=[b"?"])
    assert found.tolist() == [[b"a", b"?", b"?"], [b"?"] * 3, [b"bc", b"", b"d" * 50]]
    rows = list(given.padded_batch(3).unbatch())
    assert [row.tolist() for row in rows] == [[b"a", b"", b""], [b""] * 3, words[2]]
    flat = from_slices(runtime, np.array([b"x", b"yy", b""], object))
    assert sorted(flat.shuffle(2, 1)) == [b"", b"x", b"yy"]
    assert list(flat.batch(2).unbatch()) == [b"x", b"yy", b""]


def test_an_element_that_is_larger_than_its_padding_is_bad_alone(runtime):
    found = everything(ragged(runtime, [1, 5, 2]).padded_batch(2, [(3,)]))
    assert "component 0 has shape [5], which is larger than [3]" in found[0].message
    same(found[1:], [[[1, 0, 0], [1, 2, 0]]])


def test_rows_of_a_batch_do_not_hold_it(runtime):
    """A row that is kept costs itself, not its batch."""
    big = from_range(runtime, 50).map(lambda i: (np.full((100, 1000), i, "f4"),),
                                      [("float32", (100, 1000))])
    firsts = big.unbatch().enumerate().filter(lambda i, row: i % 100 == 0)
    with iter(firsts.shuffle(49, 1)) as one:
        next(one)
        assert runtime.claimed_bytes < 4 << 20  # 49 rows, and one batch


def test_scan_and_reduce_carry_a_state(runtime, ten):
    assert list(ten.scan([np.int64(0)], lambda s, x: (s + x, s), [I64, I64])) == [
        0, 0, 1, 3, 6, 10, 15, 21, 28, 36]
    total, most = ten.reduce([np.int64(0), np.int64(-1)],
                             lambda s, m, x: (s + x, max(m, x)), [I64, I64])
    assert (total, most) == (45, 9)
    (nothing,) = ten.take(0).reduce([np.int64(7)], lambda s, x: (s + x,), [I64])
    assert nothing == 7


def test_a_state_may_grow(runtime, ten):
    grown = ten.scan([np.zeros(0, "i8")], lambda s, x: (np.append(s, x), len(s)),
                     [(I64, (None,)), I64])
    assert list(grown) == list(range(10))


def test_a_reduction_ends_with_the_first_error(ten):
    def step(s, x):
        if x == 4:
            raise ValueError("no four")
        return (s + x,)

    with pytest.raises(Refused, match="reduce: element .*no four"):
        ten.reduce([np.int64(0)], step, [I64])


def test_a_failed_step_leaves_the_state_as_it_was(ten):
    def step(s, x):
        if x == 4:
            raise ValueError("no four")
        return s + x, s + x

    found = everything(ten.scan([np.int64(0)], step, [I64, I64]))
    assert isinstance(found.pop(4), Refused)
    assert found == [0, 1, 3, 6, 11, 17, 24, 32, 41]


# Generators


def test_a_generator_begins_anew_in_each_pass_and_is_ended(runtime):
    made = from_generator(runtime, lambda: (x * x for x in range(4)))
    assert list(made) == list(made) == [0, 1, 4, 9]
    with iter(made) as one:
        next(one)
    assert list(made.running.values()) == [None] * 3


def test_a_generator_that_is_never_asked_never_begins(runtime):
    made = from_generator(runtime, lambda: range(4))
    iter(made).close()
    assert made.running == {}


def test_what_a_generator_raises_is_one_element(runtime):
    class Odd:
        def __init__(self):
            self.at = 0

        def __iter__(self):
            return self

        def __next__(self):
            self.at += 1
            if self.at > 6:
                raise StopIteration
            if self.at == 3:
                raise ValueError("three")
            return np.float32(1) if self.at == 5 else self.at

    found = everything(from_generator(runtime, Odd).named("odd"))
    assert [x if not isinstance(x, Refused) else x.message for x in found] == [
        1, 2, "generator 'odd': element 2, three", 4,
        "generator 'odd': element 4, component 0 is float32, but its spec says int64", 6]


def test_a_generator_that_cannot_begin_ends_the_pass(runtime):
    def begin():
        raise ValueError("not today")

    with iter(from_generator(runtime, begin)) as one:
        for _ in range(2):
            with pytest.raises(Refused, match="not today"):
                next(one)


# Bad elements


def unlucky(x):
    if x % 4 == 1:
        raise ValueError(f"{x} is unlucky")
    return (x,)


def test_a_row_is_bad_as_a_whole(ten):
    """What belongs together stays together, also when bad elements are skipped."""
    pairs = ten.map(unlucky).zip(ten)
    found = everything(pairs)
    assert [i for i, x in enumerate(found) if isinstance(x, Refused)] == [1, 5, 9]
    with iter(pairs.options(on_error=sources.SKIP)) as one:
        assert list(one) == [(x, x) for x in range(10) if x % 4 != 1]
        assert one.bad_count[0] == 3
    assert list(ten.map(unlucky).enumerate().options(on_error=sources.SKIP)) == [
        (x, x) for x in range(10) if x % 4 != 1]


def test_what_was_read_is_counted_once_through_all_stages(runtime, ten):
    def counts(dataset):
        with iter(dataset.options(on_error=sources.SKIP)) as one:
            list(one)
            return one.bad_count

    bad = ten.map(unlucky)
    assert counts(bad) == (3, 10)
    assert counts(bad.filter(lambda x: x > 5)) == (3, 10)
    assert counts(bad.window(3, 1).flat_map(lambda x: x)) == (3, 10)
    assert counts(bad.shuffle(4, 1)) == (3, 10)
    assert counts(bad.batch(4, True).unbatch()) == (3, 10)
    assert counts(bad.padded_batch(4, drop_remainder=True)) == (3, 10)
    assert counts(bad.skip(3)) == (3, 10)
    assert counts(bad.repeat(3)) == (9, 30)
    assert counts(bad.scan([np.int64(0)], lambda s, x: (s, x), [I64, I64])) == (3, 10)
    lanes = ten.interleave(lambda x: from_range(runtime, 3).map(unlucky), [I64], 2, 1, 2)
    assert counts(lanes) == (10, 10 + 30)


def test_a_lane_that_cannot_be_made_is_one_bad_element(runtime, ten):
    def lane(x):
        if x == 3:
            raise ValueError("no lane")
        return from_range(runtime, 2)

    for n_parallel in (1, 2):
        found = everything(ten.interleave(lane, [I64], 3, 1, n_parallel).named("lanes"))
        assert sum(isinstance(x, Refused) for x in found) == 1
        assert len(found) == 9 * 2 + 1
        assert any("interleave 'lanes': element" in x.message and "no lane" in x.message
                   for x in found if isinstance(x, Refused))
        skipped = ten.interleave(lane, [I64], 3, 1, n_parallel).options(on_error=sources.SKIP)
        assert len(list(skipped)) == 18


def test_a_lane_of_other_elements_than_were_said_is_refused(runtime, ten):
    for wrong in (from_tensors(runtime, np.float32(1)), ten.zip(ten),
                  from_tensors(runtime, np.arange(3))):  # fmt: skip
        found = everything(ten.take(1).flat_map(lambda x: wrong))
        assert "the function made elements" in found[0].message


# Shuffles


def test_a_seed_draws_the_same_and_another_otherwise(runtime):
    some = from_range(runtime, 100)
    assert list(some.shuffle(100, 5)) == list(some.shuffle(100, 5))
    assert list(some.shuffle(100, 5)) != list(some.shuffle(100, 6))
    assert list(some.shuffle(100)) != list(some.shuffle(100))
    again = some.shuffle(100, 5)
    assert list(again) != list(again)
    kept = some.shuffle(100, 5, False)
    assert list(kept) == list(kept)
    twice = list(kept.repeat(2))
    assert twice[:100] == twice[100:]
    twice = list(again.repeat(2))
    assert sorted(twice[:100]) == sorted(twice[100:]) and twice[:100] != twice[100:]


def test_these_draws_never_change(runtime):
    """Whoever has noted a seed gets the same order from every version, on every machine."""
    assert list(from_range(runtime, 10).shuffle(10, 42)) == [7, 4, 1, 5, 2, 9, 6, 8, 0, 3]
    assert list(from_range(runtime, 10).shuffle(3, 42, False)) == [1, 3, 2, 0, 6, 5, 7, 9, 8, 4]



def test_an_order_does_not_depend_on_how_far_an_earlier_pass_went(runtime):
    """Rounds that are made ahead are not counted as passes."""
    orders = []
    for n_read in (1, 40):
        some = from_range(runtime, 10).shuffle(10, 3).repeat().prefetch(25)
        with iter(some) as one:
            for _ in range(n_read):
                next(one)
        with iter(some) as one:
            orders.append([next(one) for _ in range(30)])
    assert orders[0] == orders[1]


def test_later_epochs_of_a_restored_pass_are_drawn_as_they_would_have_been(runtime, tmp_path):
    """Also in a process that never went through the dataset, with a seed of the system's."""
    path = base.path_text(tmp_path / "state")
    for seed, again in ((3, True), (AUTO, True), (AUTO, False)):
        some = from_range(runtime, 8).shuffle(8, seed, again).repeat(3)
        list(some)
        with iter(some) as one:
            found = [next(one) for _ in range(5)]
            base.call("pl_iterator_save", one, path)
            wanted = found + list(one)
        with iter(from_range(runtime, 8).shuffle(8, seed, again).repeat(3)) as one:
            base.call("pl_iterator_restore", one, path)
            assert found + list(one) == wanted


def test_shuffled_files_have_an_order_for_each_epoch(runtime, tmp_path):
    for i in range(8):
        (tmp_path / f"{i}").touch()

    def shuffled():
        options = sources.FilesOptions(0, True, 5, False)
        return Stage("files", runtime, sources.texts([tmp_path / "*"]), 1, ctypes.byref(options))

    epochs = list(shuffled().repeat(3))
    assert len({tuple(epochs[i:i + 8]) for i in (0, 8, 16)}) == 3
    assert epochs[:8] == list(shuffled())
    ahead = shuffled().repeat().prefetch(30)
    with iter(ahead) as one:
        next(one)
    second = shuffled()
    list(second)
    assert list(ahead.take(8)) == list(second)


def test_shuffled_places_cost_their_numbers_only(runtime):
    with iter(from_range(runtime, 1000000).shuffle(1000000, 1)) as one:
        next(one)
        assert runtime.claimed_bytes <= 8.5e6  # four bytes each, and room to grow
    with iter(from_range(runtime, 1 << 40).shuffle(1000, 1)) as one:
        next(one)
        assert runtime.claimed_bytes <= 40000


def test_places_and_elements_are_drawn_alike(runtime):
    some = from_range(runtime, 200)
    for buffer_size in (1, 7, 200, 1000):
        assert list(some.shuffle(buffer_size, 9)) == list(some.prefetch(1).shuffle(buffer_size, 9))
    stages = some.skip(20).take(100).shard(3, 1).enumerate(4)
    assert list(stages.shuffle(50, 9)) == list(stages.prefetch(1).shuffle(50, 9))


def test_draws_are_even(runtime):
    """Each of 6 orders of 3 elements about as often: within 5 sigma."""
    counts = {}
    for seed in range(3000):
        order = tuple(from_range(runtime, 3).shuffle(3, seed))
        counts[order] = counts.get(order, 0) + 1
    assert len(counts) == 6
    assert all(abs(n - 500) < 5 * (500 * 5 / 6)**.5 for n in counts.values())


# Shards


@pytest.mark.parametrize("names", [("RANK", "WORLD_SIZE"),
                                   ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
                                   ("PMI_RANK", "PMI_SIZE"), ("SLURM_PROCID", "SLURM_NTASKS")])
def test_a_launcher_says_which_shard_it_is(ten, launcher, names):
    launcher(**dict(zip(names, ("2", "4"))))
    assert list(ten.shard(AUTO)) == [2, 6]


def test_torchrun_goes_before_what_started_it(ten, launcher):
    launcher(SLURM_PROCID="0", SLURM_NTASKS="2", RANK="1", WORLD_SIZE="3")
    assert list(ten.shard(AUTO)) == [1, 4, 7]


def test_without_a_launcher_a_shard_is_all(ten, launcher):
    launcher()
    assert list(ten.shard(AUTO)) == list(range(10))


@pytest.mark.parametrize("environment, said", [
    ({"RANK": "1"}, "has RANK, but no WORLD_SIZE"),
    ({"SLURM_NTASKS": "4"}, "has SLURM_NTASKS, but no SLURM_PROCID"),
    ({"RANK": "x", "WORLD_SIZE": "4"}, "RANK is 'x', no number"),
    ({"PMI_RANK": "4", "PMI_SIZE": "4"}, "PMI_RANK=4 of PMI_SIZE=4"),
    ({"PMI_RANK": "0", "PMI_SIZE": ""}, "PMI_SIZE is '', no number"),
])  # fmt: skip
def test_a_launcher_that_says_nonsense_is_refused(ten, launcher, environment, said):
    launcher(**environment)
    with pytest.raises(Refused, match=said):
        ten.shard(AUTO)


@pytest.fixture
def launcher(monkeypatch):
    """Sets the environment; os.environ writes through to C's."""
    def start(**environment):
        for name in ("RANK WORLD_SIZE OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE PMI_RANK PMI_SIZE "
                     "SLURM_PROCID SLURM_NTASKS").split():  # fmt: skip
            monkeypatch.delenv(name, raising=False)
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
    return start


def test_a_shard_of_places_does_not_make_the_others(runtime, tmp_path):
    """Only its own numbers of a file are read: the file is cut off where others' lie."""
    path = tmp_path / "numbers.npy"
    np.save(path, np.arange(20, dtype="i4"))
    tensor = runtime.open(path)
    slices = Stage("from_slices", runtime, base.pointers([tensor]), 1)
    path.write_bytes(path.read_bytes()[:-4])
    assert list(slices.shard(2, 0)) == list(range(0, 20, 2))
    found = everything(slices.shard(2, 1))
    assert isinstance(found[-1], Refused) and len(found) == 10


# Refusals


@pytest.mark.parametrize("make, said", [
    (lambda d, r: d.shard(0), "0 shards"),
    (lambda d, r: d.shard(3, 3), "index 3 of 3 shards"),
    (lambda d, r: d.shard(3, -1), "index -1 of 3 shards"),
    (lambda d, r: d.shuffle(0), "a buffer of 0 elements"),
    (lambda d, r: d.shuffle(3, -7), "a seed of -7"),
    (lambda d, r: d.window(0), "size 0, shift 0, stride 1: each is at least 1"),
    (lambda d, r: d.window(1 << 62, 1, 1 << 62), "size and stride are too large"),
    (lambda d, r: d.unbatch(), "component 0 is a scalar, which has no slices"),
    (lambda d, r: d.window(2).unbatch(), "component 0 is a dataset"),
    (lambda d, r: d.window(2).padded_batch(2), "component 0 is a dataset"),
    (lambda d, r: d.padded_batch(0), "0 elements"),
    (lambda d, r: d.padded_batch(2, [(3,)]), r"shape \[\], which cannot be padded to \[3\]"),
    (lambda d, r: d.padded_batch(2, values=[np.float32(1)]), "int64, and is padded with float32"),
    (lambda d, r: d.map(lambda x: (x,), [(I64, None)]).padded_batch(2), "is not known: say to"),
    (lambda d, r: d.interleave(lambda x: d, [I64], 0), "a cycle of 0"),
    (lambda d, r: d.interleave(lambda x: d, [I64], 1, 0), "blocks of 0 elements"),
    (lambda d, r: d.interleave(lambda x: d, [I64], 1, 1, 0), "0 calls at once"),
    (lambda d, r: d.filter(lambda x: x, [I64]), "gives int64, not a bool scalar"),
    (lambda d, r: d.filter(lambda x: x, ["bool", I64]), "has 2 outputs, not one"),
    (lambda d, r: d._with_function("flat_map", lambda x: x, [I64]), "make one dataset, not a ten"),
    (lambda d, r: d.concatenate(d.zip(d)), "1 components, then with 2"),
    (lambda d, r: d.concatenate(from_tensors(r, np.float32(1))), "component 0 is int64, then flo"),
    (lambda d, r: d.scan([np.int64(0)], lambda s, x: (s,), [I64]), "1 outputs: 1 are the next"),
    (lambda d, r: d.scan([np.int64(0)], lambda s, x: (s, x), ["int8", I64]), "is int64, and then"),
    (lambda d, r: d.reduce([np.int64(0)], lambda s, x: (s, x), [I64, I64]), "no more"),
    (lambda d, r: from_generator(r, lambda: [], [I64], -3), "-3 elements"),
])  # fmt: skip
def test_what_cannot_be_is_refused_when_it_is_made(runtime, ten, make, said):
    with pytest.raises(Refused, match=said):
        make(ten, runtime)


def test_unequal_rows_are_refused_when_they_are_met(runtime, ten):
    odd = ten.map(lambda x: (np.zeros(2), np.zeros(2 if x else 3)),
                  [("float64", (None,)), ("float64", (None,))])
    found = everything(odd.take(2).unbatch())
    assert "component 0 has 2 slices, component 1 has 3" in found[0].message
    assert len(found) == 3


def test_a_buffer_that_does_not_fit_is_refused_with_what_there_is(tmp_path):
    with base.Runtime(cap_bytes=1 << 20, spill_limit_bytes=1, spill=tmp_path) as small:
        with iter(from_range(small, 10**6).prefetch(1).shuffle(10**6, 1).named("mixed")) as found:
            with pytest.raises(Refused, match="'mixed': .* elements of its buffer are there") as refused:
                next(found)
        assert refused.value.code == "PL_EBUDGET"
        assert small.claimed_bytes == 0
