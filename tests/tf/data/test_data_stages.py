# SPDX-License-Identifier: Apache-2.0
"""tf.data's stages without functions, after TensorFlow's documentation of each."""
import collections
import os

import numpy as np
import pytest

import plimsoll.tf as tf

Dataset = tf.data.Dataset


def elements(dataset):
    return list(dataset.as_numpy_iterator())


def rows(dataset):
    return [element.tolist() for element in dataset.as_numpy_iterator()]


# ---- batches ----


def test_batches_have_a_remainder_unless_it_is_dropped():
    assert rows(Dataset.range(8).batch(3)) == [[0, 1, 2], [3, 4, 5], [6, 7]]
    dropped = Dataset.range(8).batch(3, drop_remainder=True)
    assert rows(dropped) == [[0, 1, 2], [3, 4, 5]]
    assert Dataset.range(8).batch(3).element_spec == tf.TensorSpec((None,), tf.int64)
    assert dropped.element_spec == tf.TensorSpec((3,), tf.int64)
    assert (len(Dataset.range(8).batch(3)), len(dropped)) == (3, 2)


def test_a_batch_takes_numbers_and_tensors():
    assert rows(Dataset.range(2).batch(np.int64(2))) == [[0, 1]]
    assert rows(Dataset.range(2).batch(tf.constant(2, tf.int64))) == [[0, 1]]
    assert rows(Dataset.range(2).batch(2, num_parallel_calls=tf.data.AUTOTUNE)) == [[0, 1]]


def test_a_batch_of_none_is_refused():
    with pytest.raises(tf.errors.InvalidArgumentError):
        Dataset.range(2).batch(0)


def test_elements_of_other_shapes_make_no_batch():
    dataset = Dataset.from_generator(
        lambda: iter([[1], [1, 2]]), output_signature=tf.TensorSpec((None,), tf.int32)
    )
    with pytest.raises(tf.errors.InvalidArgumentError):
        elements(dataset.batch(2))


def ragged(lists, dtype=tf.int32):
    return Dataset.from_generator(
        lambda: iter(lists), output_signature=tf.TensorSpec((None,), dtype)
    )


def test_a_padded_batch_is_as_long_as_its_longest():
    A = ragged([[1], [2, 2], [3, 3, 3], [4, 4, 4, 4]])
    found = rows(A.padded_batch(2))
    assert found == [[[1, 0], [2, 2]], [[3, 3, 3, 0], [4, 4, 4, 4]]]
    assert A.padded_batch(2).element_spec == tf.TensorSpec((None, None), tf.int32)


def test_a_padded_batch_is_as_long_as_it_is_told():
    A = ragged([[1], [2, 2], [3, 3, 3], [4, 4, 4, 4]])
    for shape in (5, [5], tf.TensorShape([5])):
        assert rows(A.padded_batch(2, padded_shapes=shape)) == [
            [[1, 0, 0, 0, 0], [2, 2, 0, 0, 0]],
            [[3, 3, 3, 0, 0], [4, 4, 4, 4, 0]],
        ]
    assert rows(A.padded_batch(2, padded_shapes=[5], padding_values=-1))[0] == [
        [1, -1, -1, -1, -1],
        [2, 2, -1, -1, -1],
    ]


def test_components_are_padded_each_by_its_own():
    elements_ = [([1, 2, 3], [10]), ([4, 5], [11, 12])]
    dataset = Dataset.from_generator(
        lambda: iter(elements_),
        output_signature=(tf.TensorSpec((None,), tf.int32),) * 2,
    )
    batch = dataset.padded_batch(2, padded_shapes=([4], [None]), padding_values=(-1, 100))
    first, second = elements(batch)[0]
    assert first.tolist() == [[1, 2, 3, -1], [4, 5, -1, -1]]
    assert second.tolist() == [[10, 100], [11, 12]]
    zipped = Dataset.zip(ragged([[1], [1, 2]]), ragged([[3], [4, 5]])).padded_batch(
        2, padding_values=-1
    )
    assert [part.tolist() for part in elements(zipped)[0]] == [[[1, -1], [1, 2]], [[3, -1], [4, 5]]]


def test_what_does_not_fit_its_padding_is_refused():
    with pytest.raises(tf.errors.DataLossError, match="larger than"):
        elements(ragged([[1, 2, 3]]).padded_batch(1, padded_shapes=[2]))
    with pytest.raises(ValueError, match="1-D tensor"):
        ragged([[1]]).padded_batch(1, padded_shapes=[[1, 1], [1, 1]])
    with pytest.raises(TypeError, match="1-D tensor"):
        ragged([[1]]).padded_batch(1, padded_shapes=tf.constant([1.5]))
    with pytest.raises(TypeError, match="sparse"):
        Dataset.from_tensors(tf.sparse.from_dense([[1]])).padded_batch(1)
    with pytest.raises(ValueError):
        Dataset.from_tensors([1, 2, 3]).padded_batch(1, padded_shapes=[2])
    with pytest.raises(TypeError):
        ragged([[1]]).padded_batch(1, padding_values=tf.constant(1.5))


def test_padding_needs_a_rank():
    dataset = Dataset.from_generator(lambda: iter([1]), tf.int64)
    with pytest.raises(ValueError, match="unknown rank"):
        dataset.padded_batch(2)


def test_strings_are_padded_with_empty_ones():
    dataset = ragged([["a"], ["b", "c"]], tf.string)
    assert rows(dataset.padded_batch(2)) == [[[b"a", b""], [b"b", b"c"]]]


def test_unbatch_is_the_reverse():
    dataset = ragged([[1, 2, 3], [1, 2], [1, 2, 3, 4]], tf.int64).unbatch()
    assert elements(dataset) == [1, 2, 3, 1, 2, 1, 2, 3, 4]
    assert elements(Dataset.range(6).batch(3).unbatch()) == list(range(6))
    with pytest.raises(ValueError, match="scalar"):
        Dataset.range(3).unbatch()


def test_rebatch_makes_batches_of_another_size():
    assert rows(Dataset.range(6).batch(2).rebatch(4)) == [[0, 1, 2, 3], [4, 5]]
    assert rows(Dataset.range(6).batch(2).rebatch(4, drop_remainder=True)) == [[0, 1, 2, 3]]
    with pytest.raises(NotImplementedError, match="rebatch"):
        Dataset.range(6).batch(2).rebatch([1, 2])


# ---- windows ----


def windows(dataset):
    return [elements(window) for window in dataset]


def test_windows_are_datasets():
    dataset = Dataset.range(7).window(3)
    assert windows(dataset) == [[0, 1, 2], [3, 4, 5], [6]]
    assert windows(Dataset.range(7).window(3, drop_remainder=True)) == [[0, 1, 2], [3, 4, 5]]
    assert dataset.element_spec == tf.data.DatasetSpec(tf.TensorSpec((), tf.int64))
    assert all(isinstance(window, Dataset) for window in dataset)


def test_windows_shift_and_stride():
    assert windows(Dataset.range(7).window(3, 2, 1, True)) == [[0, 1, 2], [2, 3, 4], [4, 5, 6]]
    assert windows(Dataset.range(7).window(3, 1, 2, True)) == [[0, 2, 4], [1, 3, 5], [2, 4, 6]]


def test_windows_of_structures_are_structures_of_datasets():
    dataset = Dataset.from_tensor_slices(([1, 2, 3, 4, 5], [6, 7, 8, 9, 10])).window(2)
    found = [tuple(elements(part) for part in window) for window in dataset]
    assert found == [([1, 2], [6, 7]), ([3, 4], [8, 9]), ([5], [10])]
    named = Dataset.from_tensor_slices({"a": [1, 2, 3], "b": [4, 5, 6]}).window(2)
    assert [{key: elements(part) for key, part in window.items()} for window in named] == [
        {"a": [1, 2], "b": [4, 5]},
        {"a": [3], "b": [6]},
    ]


def test_windows_become_tensors_by_flat_map():
    dataset = Dataset.range(7).window(3, shift=1, drop_remainder=True)
    flat = dataset.flat_map(lambda window: window.batch(3, drop_remainder=True))
    assert rows(flat) == [[n, n + 1, n + 2] for n in range(5)]
    assert flat.element_spec == tf.TensorSpec((3,), tf.int64)


def test_windows_of_pairs_are_zipped_again():
    dataset = Dataset.from_tensor_slices((np.arange(6), np.arange(6) * 10)).window(3)
    flat = dataset.flat_map(lambda x, y: Dataset.zip((x.batch(3), y.batch(3))))
    assert [(x.tolist(), y.tolist()) for x, y in elements(flat)] == [
        ([0, 1, 2], [0, 10, 20]),
        ([3, 4, 5], [30, 40, 50]),
    ]


def test_windows_can_be_reduced_in_a_map():
    dataset = Dataset.range(6).window(2).map(
        lambda window: window.reduce(tf.constant(0, tf.int64), lambda total, x: total + x)
    )
    assert elements(dataset) == [1, 5, 9]


def test_windows_make_no_batch():
    with pytest.raises(NotImplementedError, match="flat_map"):
        Dataset.range(4).window(2).batch(2)


# ---- order and number ----


def test_counts_are_whole_numbers():
    for wrong in (2.5, "2", None):
        with pytest.raises(TypeError):
            Dataset.range(4).take(wrong)
    with pytest.raises(TypeError):
        Dataset.range(2.5)
    assert elements(Dataset.range(tf.constant(4)).take(np.int32(2))) == [0, 1]


def test_a_shuffle_gives_each_element_once():
    dataset = Dataset.range(100).shuffle(10)
    assert elements(dataset) != list(range(100))
    assert sorted(elements(dataset)) == list(range(100))


def test_a_shuffle_is_another_in_each_pass_unless_told_not_to():
    dataset = Dataset.range(50).shuffle(50, reshuffle_each_iteration=True)
    assert elements(dataset) != elements(dataset)
    fixed = Dataset.range(50).shuffle(50, reshuffle_each_iteration=False)
    assert elements(fixed) == elements(fixed)
    twice = elements(Dataset.range(50).shuffle(50, seed=1).repeat(2))
    assert twice[:50] != twice[50:] and sorted(twice[:50]) == list(range(50))


def test_one_seed_is_one_order():
    one, other = (Dataset.range(50).shuffle(20, seed=7) for _ in range(2))
    assert elements(one) == elements(other)
    assert elements(Dataset.range(50).shuffle(20, seed=8)) != elements(
        Dataset.range(50).shuffle(20, seed=7)
    )


def test_the_programs_seed_is_one_order():
    orders = []
    for _ in range(2):
        tf.random.set_seed(1234)
        first = Dataset.range(50).shuffle(50)
        second = Dataset.range(50).shuffle(50)
        orders.append((elements(first), elements(second)))
    assert orders[0] == orders[1]
    assert orders[0][0] != orders[0][1]


def test_an_empty_buffer_is_refused():
    with pytest.raises(tf.errors.InvalidArgumentError, match="greater than zero"):
        Dataset.range(3).shuffle(0)


def test_a_buffer_of_all():
    assert sorted(elements(Dataset.range(9).shuffle(tf.data.UNKNOWN_CARDINALITY))) == list(range(9))


def test_repeat():
    dataset = Dataset.from_tensor_slices([1, 2, 3])
    assert elements(dataset.repeat(3)) == [1, 2, 3] * 3
    assert elements(dataset.repeat(0)) == []
    assert elements(dataset.repeat().take(4)) == [1, 2, 3, 1]
    assert int(dataset.repeat(-1).cardinality()) == tf.data.INFINITE_CARDINALITY


def test_take_and_skip():
    assert elements(Dataset.range(10).take(3)) == [0, 1, 2]
    assert elements(Dataset.range(3).take(-1)) == [0, 1, 2]
    assert elements(Dataset.range(10).skip(7)) == [7, 8, 9]
    assert elements(Dataset.range(10).skip(-1)) == []
    assert elements(Dataset.range(3).take(10)) == [0, 1, 2]


def test_shard():
    dataset = Dataset.range(10)
    assert elements(dataset.shard(num_shards=3, index=0)) == [0, 3, 6, 9]
    assert elements(dataset.shard(num_shards=3, index=1)) == [1, 4, 7]
    assert elements(dataset.shard(num_shards=3, index=2)) == [2, 5, 8]
    with pytest.raises(tf.errors.InvalidArgumentError):
        dataset.shard(3, 3)
    with pytest.raises(tf.errors.InvalidArgumentError):
        dataset.shard(0, 0)


@pytest.mark.parametrize(
    "environment, expected",
    [
        ({"RANK": "1", "WORLD_SIZE": "3"}, [1, 4, 7]),
        ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4"}, [2, 6]),
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "5"}, [0, 5]),
    ],
)
def test_what_started_the_process_says_which_shard_it_reads(monkeypatch, environment, expected):
    for name in ("RANK", "WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"):
        monkeypatch.delenv(name, raising=False)
    assert elements(Dataset.range(9).shard(tf.data.AUTOTUNE)) == list(range(9))
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert elements(Dataset.range(9).shard(tf.data.AUTOTUNE)) == expected
    with pytest.raises(tf.errors.InvalidArgumentError):
        Dataset.range(9).shard(-1, 0)
    with pytest.raises(TypeError, match="index"):
        Dataset.range(9).shard(3)


def test_enumerate():
    dataset = Dataset.from_tensor_slices([1, 2, 3]).enumerate(start=5)
    assert elements(dataset) == [(5, 1), (6, 2), (7, 3)]
    assert dataset.element_spec == (tf.TensorSpec((), tf.int64), tf.TensorSpec((), tf.int32))
    pairs = Dataset.from_tensor_slices([(7, 8), (9, 10)]).enumerate()
    assert [(number, pair.tolist()) for number, pair in elements(pairs)] == [
        (0, [7, 8]),
        (1, [9, 10]),
    ]
    nested = Dataset.from_tensor_slices(([1, 2], [3, 4])).enumerate()
    assert elements(nested) == [(0, (1, 3)), (1, (2, 4))]


def test_concatenate():
    assert elements(Dataset.range(1, 4).concatenate(Dataset.range(4, 8))) == list(range(1, 8))
    with pytest.raises(TypeError, match="Incompatible dataset elements"):
        Dataset.range(3).concatenate(Dataset.zip((Dataset.range(1), Dataset.range(1))))
    with pytest.raises(TypeError, match="Incompatible dataset elements"):
        Dataset.range(3).concatenate(Dataset.from_tensor_slices(["a", "b"]))


def test_concatenated_named_tuples_are_of_one_class():
    one, other = (collections.namedtuple(name, ["x"]) for name in ("One", "Other"))
    mine, theirs = (Dataset.from_tensor_slices(cls([1, 2])) for cls in (one, other))
    assert type(elements(mine.concatenate(mine))[3]) is one
    with pytest.raises(TypeError, match="Incompatible"):
        mine.concatenate(theirs)


def test_concatenate_matches_dicts_by_their_keys():
    one = Dataset.from_tensor_slices({"a": [1], "b": [2]})
    other = Dataset.from_tensor_slices({"b": [4], "a": [3]})
    assert elements(one.concatenate(other)) == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]


def test_concatenated_shapes_become_unknown_where_they_differ():
    dataset = Dataset.from_tensors([1, 2]).concatenate(Dataset.from_tensors([1, 2, 3]))
    assert dataset.element_spec == tf.TensorSpec((None,), tf.int32)
    assert rows(dataset) == [[1, 2], [1, 2, 3]]


def test_prefetch_changes_nothing():
    for ahead in (0, 1, 3, tf.data.AUTOTUNE):
        assert elements(Dataset.range(5).prefetch(ahead)) == list(range(5))
    with pytest.raises(tf.errors.InvalidArgumentError):
        Dataset.range(5).prefetch(-3)


# ---- what is kept ----


def counted(calls):
    def gen():
        calls.append(1)
        yield from range(3)

    return Dataset.from_generator(gen, output_signature=tf.TensorSpec((), tf.int64))


def test_a_cache_is_filled_once():
    calls = []
    dataset = counted(calls).cache()
    assert elements(dataset) == elements(dataset) == [0, 1, 2]
    assert len(calls) == 1


def test_a_cache_is_full_when_all_that_there_are_were_taken():
    dataset = Dataset.range(10).shuffle(10).cache()
    taken = iter(dataset)
    first = [int(next(taken)) for _ in range(10)]  # as many steps as an epoch has: nobody asks for more
    assert elements(dataset) == first
    assert list(taken) == []
    few = Dataset.range(10).shuffle(10).cache()
    begun = iter(few)
    next(begun)
    assert sorted(elements(few)) == list(range(10))


def test_a_file_is_known_again_behind_a_shuffle_without_a_seed(tmp_path, run_python):
    (tmp_path / "a.txt").write_text("")
    (tmp_path / "b.txt").write_text("")
    text = f'''
import plimsoll.tf as tf
calls = []
def see(name):
    calls.append(name)
    return name
names = tf.data.Dataset.list_files(r"{tmp_path}/*.txt")
names = names.map(lambda name: tf.py_function(see, [name], tf.string)).shuffle(2)
assert sorted(map(len, names.cache(r"{tmp_path}/kept").as_numpy_iterator()))
assert len(list(names.snapshot(r"{tmp_path}/folder"))) == 2
print(len(calls))
'''
    assert [run_python(text) for _ in range(2)] == ["4\n", "0\n"]


def test_a_cache_in_a_file_outlives_the_dataset(tmp_path):
    calls = []
    path = str(tmp_path / "cached")
    assert elements(counted(calls).cache(path)) == [0, 1, 2]
    assert elements(counted(calls).cache(path)) == [0, 1, 2]
    assert len(calls) == 1


def test_a_snapshot_is_read_again(tmp_path):
    calls = []
    for _ in range(2):
        assert elements(counted(calls).snapshot(str(tmp_path / "kept"))) == [0, 1, 2]
    assert len(calls) == 1


def test_what_is_saved_has_its_structure_when_it_is_loaded(tmp_path):
    path = str(tmp_path / "saved")
    dataset = Dataset.from_tensor_slices({"b": ([1, 2], [3.0, 4.0]), "a": ["x", "y"]})
    dataset.save(path)
    loaded = Dataset.load(path)
    assert loaded.element_spec == dataset.element_spec
    assert elements(loaded) == elements(dataset)
    assert elements(Dataset.load(path, dataset.element_spec)) == elements(dataset)
    with pytest.raises(tf.errors.InvalidArgumentError):
        Dataset.load(path, tf.TensorSpec((), tf.int64))


def test_what_saving_cannot_do_is_said(tmp_path):
    path = str(tmp_path / "saved")
    for call in (
        lambda: Dataset.range(3).save(path, shard_func=lambda x: x),
        lambda: Dataset.range(3).snapshot(path, reader_func=lambda x: x),
        lambda: Dataset.range(3).snapshot(path, shard_func=lambda x: x),
        lambda: Dataset.load(path, reader_func=lambda x: x),
        lambda: Dataset.load(path, wait=True),
        lambda: Dataset.range(3).window(2).save(path),
    ):
        with pytest.raises(NotImplementedError):
            call()


def test_a_structure_that_was_damaged_is_data_loss(tmp_path):
    path = tmp_path / "saved"
    Dataset.range(3).save(str(path))
    for text in ("no json", '{"tree": ["tuple", [null, null]]}', '{"version": 1}'):
        (path / "structure.json").write_text(text)
        with pytest.raises(tf.errors.DataLossError, match="structure.json"):
            Dataset.load(str(path))
    (path / "structure.json").unlink()
    assert elements(Dataset.load(str(path))) == [0, 1, 2]


@pytest.mark.parametrize("keep", [Dataset.save, Dataset.snapshot])
@pytest.mark.parametrize("text", ["mine", '["tree"]', "17", "{}"])
def test_a_file_that_happens_to_be_called_as_the_structure_stays(tmp_path, keep, text):
    path = tmp_path / "structure.json"
    path.write_text(text)
    with pytest.raises(tf.errors.AlreadyExistsError, match="structure.json"):
        keep(Dataset.range(3), str(tmp_path))
    assert path.read_text() == text and os.listdir(tmp_path) == [path.name]
    path.unlink()
    for _ in range(2):  # its own is replaced
        Dataset.range(3).save(str(tmp_path))
    assert elements(Dataset.load(str(tmp_path))) == [0, 1, 2]


def test_a_structure_is_not_written_through_a_link(tmp_path):
    precious, folder = tmp_path / "precious", tmp_path / "saved"
    precious.write_text("precious")
    folder.mkdir()
    (folder / f".structure.json.{os.getpid()}").symlink_to(precious)
    Dataset.range(3).save(str(folder))
    assert precious.read_text() == "precious"
    (folder / "structure.json").unlink()
    (folder / "structure.json").symlink_to(tmp_path / "nothing")
    with pytest.raises(tf.errors.AlreadyExistsError, match="structure.json"):
        Dataset.range(3).save(str(folder))
    assert not (tmp_path / "nothing").exists()


def test_what_was_never_saved_is_not_found(tmp_path):
    with pytest.raises(tf.errors.NotFoundError):
        Dataset.load(str(tmp_path / "nothing"))


# ---- sizes and truth ----


def test_cardinality_and_len():
    assert int(Dataset.range(42).cardinality()) == 42
    assert Dataset.range(42).cardinality().dtype == tf.int64
    unknown = Dataset.range(42).filter(lambda x: x > 1)
    assert int(unknown.cardinality()) == tf.data.UNKNOWN_CARDINALITY
    with pytest.raises(TypeError, match="length is unknown"):
        len(unknown)
    with pytest.raises(TypeError, match="infinite"):
        len(Dataset.range(1).repeat())


def test_a_dataset_is_true_even_if_it_is_empty():
    assert bool(Dataset.range(0))
    assert len(Dataset.range(0)) == 0


def test_its_text_has_its_spec():
    text = repr(Dataset.range(3).map(lambda x: x))
    assert text == "<_MapDataset element_spec=TensorSpec(shape=(), dtype=tf.int64, name=None)>"


def test_options_are_kept_and_merged():
    options = tf.data.Options()
    options.deterministic = False
    options.threading.private_threadpool_size = 2
    options.autotune.enabled = True
    dataset = Dataset.range(5).with_options(options).map(lambda x: x)
    assert dataset.options().deterministic is False
    assert dataset.options().threading.private_threadpool_size == 2
    assert sorted(elements(dataset)) == list(range(5))
    other = tf.data.Options()
    other.deterministic = True
    assert dataset.with_options(other).options().deterministic is True
    assert dataset.with_options(other).options().autotune.enabled is True


def test_only_what_is_said_changes_a_pass():
    options = tf.data.Options()
    assert options._fields() == {}
    options.deterministic = True
    options.threading.max_intra_op_parallelism = 1
    options.experimental_optimization.map_fusion = True
    assert options._fields() == {}
    options.deterministic = False
    options.threading.private_threadpool_size = 3
    options.autotune.ram_budget = 1 << 20
    assert options._fields() == {
        "nondeterministic": True,
        "n_threads": 3,
        "budget_bytes": 1 << 20,
    }


def test_options_have_types_and_names():
    options = tf.data.Options()
    with pytest.raises(TypeError, match="deterministic"):
        options.deterministic = "no"
    with pytest.raises(AttributeError):
        options.determinstic = True
    assert options == tf.data.Options() and options.deterministic is None


@pytest.mark.parametrize("name", ["ragged_batch", "sparse_batch"])
def test_what_is_not_there_says_so(name):
    with pytest.raises(NotImplementedError, match=f"tf.data.Dataset.{name}"):
        getattr(Dataset.range(3), name)
    with pytest.raises(NotImplementedError, match=f"tf.data.Dataset.{name}"):
        getattr(Dataset, name)
    assert not hasattr(Dataset, "no_such_method") and name not in dir(Dataset)


@pytest.mark.parametrize("name", ["Optional", "prefetch_to_device", "copy_to_device", "service"])
def test_what_is_not_among_experiments_says_so(name):
    with pytest.raises(NotImplementedError, match=f"tf.data.experimental.{name}"):
        getattr(tf.data.experimental, name)


def unknown():
    return Dataset.range(5).filter(lambda _: True)


INFINITE, UNKNOWN = tf.data.INFINITE_CARDINALITY, tf.data.UNKNOWN_CARDINALITY


@pytest.mark.parametrize(
    "make, expected",
    [
        (lambda: Dataset.range(5).batch(2, drop_remainder=True), 2),
        (lambda: Dataset.range(5).batch(2), 3),
        (lambda: unknown().batch(2), UNKNOWN),
        (lambda: Dataset.range(5).repeat().batch(2), INFINITE),
        (lambda: Dataset.range(5).cache(), 5),
        (lambda: Dataset.range(5).concatenate(Dataset.range(5)), 10),
        (lambda: Dataset.range(5).concatenate(Dataset.range(5).repeat()), INFINITE),
        (lambda: Dataset.range(5).concatenate(unknown()), UNKNOWN),
        (lambda: unknown(), UNKNOWN),
        (lambda: Dataset.range(5).flat_map(lambda _: Dataset.from_tensors(0)), UNKNOWN),
        (lambda: Dataset.from_tensors([0]), 1),
        (lambda: Dataset.from_tensor_slices([[0, 0], [1, 1], [2, 2]]), 3),
        (lambda: Dataset.range(5).map(lambda x: x), 5),
        (lambda: Dataset.range(5).map(lambda x: x, num_parallel_calls=1), 5),
        (lambda: Dataset.range(5).padded_batch(2, [], drop_remainder=True), 2),
        (lambda: Dataset.range(5).prefetch(1), 5),
        (lambda: Dataset.range(5).repeat(0), 0),
        (lambda: Dataset.range(5).repeat(2), 10),
        (lambda: Dataset.range(5).repeat(), INFINITE),
        (lambda: unknown().repeat(2), UNKNOWN),
        (lambda: Dataset.range(5).shuffle(10), 5),
        (lambda: Dataset.range(5).shard(2, 0), 3),
        (lambda: Dataset.range(5).shard(8, 7), 0),
        (lambda: Dataset.range(5).skip(2), 3),
        (lambda: Dataset.range(5).skip(8), 0),
        (lambda: Dataset.range(5).skip(-1), 0),
        (lambda: Dataset.range(5).repeat().skip(2), INFINITE),
        (lambda: Dataset.range(5).take(2), 2),
        (lambda: Dataset.range(5).take(8), 5),
        (lambda: Dataset.range(5).repeat().take(2), 2),
        (lambda: unknown().take(2), UNKNOWN),
        (lambda: Dataset.range(4).window(2), 2),
        (lambda: Dataset.range(5).window(2, drop_remainder=True), 2),
        (lambda: Dataset.zip(Dataset.range(5), Dataset.range(3)), 3),
        (lambda: Dataset.zip(Dataset.range(5), Dataset.range(3).repeat()), 5),
        (lambda: Dataset.zip(Dataset.range(5).repeat(), Dataset.range(3).repeat()), INFINITE),
        (lambda: Dataset.zip(Dataset.range(5), unknown()), UNKNOWN),
        (lambda: Dataset.range(4).batch(2, drop_remainder=True).unbatch(), 4),
        (lambda: Dataset.range(5).scan(0, lambda state, x: (state, x)), 5),
    ],
)
def test_cardinalities_are_tensorflows(make, expected):
    assert int(make().cardinality()) == expected


def test_stages_without_end_are_refused():
    dataset = Dataset.range(2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="8192 stages in a row"):
        for _ in range(100_000):
            dataset = dataset.concatenate(Dataset.range(1))
    assert int(next(iter(dataset))) == 0
