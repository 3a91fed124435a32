# SPDX-License-Identifier: Apache-2.0
"""tf.compat.v1: TensorFlow 1's names. All other names are as in tf itself.

    >>> import plimsoll.tf as tf
    >>> with tf.Graph().as_default():
    ...     with tf.compat.v1.variable_scope("layer"):
    ...         w = tf.compat.v1.get_variable("w", [2], initializer=tf.compat.v1.ones_initializer())
    ...     with tf.compat.v1.Session() as session:
    ...         session.run(tf.compat.v1.global_variables_initializer())
    ...         print(w.name, session.run(w))
    layer/w:0 [1. 1.]
"""
from __future__ import annotations

from typing import Any, List, Optional

import plimsoll.tf as _tf

from ... import _core
from .. import _not_implemented
from .._graph import context as _context, graph as _graph, py_function as _py_function
from .._values import types as _types, variable as _variable
from .._graph.graph import (
    GLOBAL_VARIABLES,
    LOCAL_VARIABLES,
    TRAINABLE_VARIABLES,
    get_default_graph,
    reset_default_graph,
)
from .._values.initializers import (
    Constant as constant_initializer,
    GlorotNormal as glorot_normal_initializer,
    GlorotUniform as glorot_uniform_initializer,
    Ones as ones_initializer,
    RandomNormal as random_normal_initializer,
    RandomUniform as random_uniform_initializer,
    TruncatedNormal as truncated_normal_initializer,
    VarianceScaling as variance_scaling_initializer,
    Zeros as zeros_initializer,
)
from .._graph.session import (
    ConfigProto,
    GPUOptions,
    InteractiveSession,
    RunMetadata,
    RunOptions,
    Session,
    SparseTensorValue,
    get_default_session,
)
from .._values.shape import Dimension
from .._graph.variable_scope import (
    AUTO_REUSE,
    VariableScope,
    get_variable,
    get_variable_scope,
    variable_scope,
)

xavier_initializer = glorot_uniform_initializer


class GraphKeys:
    """Names of a graph's collections.

    >>> GraphKeys.GLOBAL_VARIABLES
    'variables'
    """

    GLOBAL_VARIABLES = GLOBAL_VARIABLES
    LOCAL_VARIABLES = LOCAL_VARIABLES
    MODEL_VARIABLES = "model_variables"
    TRAINABLE_VARIABLES = TRAINABLE_VARIABLES
    SUMMARIES = "summaries"
    UPDATE_OPS = "update_ops"
    LOSSES = "losses"
    REGULARIZATION_LOSSES = "regularization_losses"
    GLOBAL_STEP = "global_step"
    INIT_OP = "init_op"


# ---- how things are computed ----


def disable_eager_execution() -> None:
    """From now on ops go into the default graph. To be said before any are made.

    >>> disable_eager_execution()
    >>> _tf.executing_eagerly()
    False
    >>> enable_eager_execution()
    """
    if _context.here.graph is not None and _context.here.graph is not get_default_graph():
        raise ValueError("tf.disable_eager_execution must be called at program startup.")
    _context.eager_by_default = False
    _context.set_graph(get_default_graph())


def enable_eager_execution(
    config: Any = None, device_policy: Any = None, execution_mode: Any = None
) -> None:
    """As it is in the beginning.

    >>> enable_eager_execution()
    >>> _tf.executing_eagerly()
    True
    """
    _context.eager_by_default = True
    _context.set_graph(None)


def disable_v2_behavior() -> None:
    """Only this much of it: ops go into the default graph.

    >>> disable_v2_behavior()
    >>> _tf.executing_eagerly()
    False
    >>> enable_v2_behavior()
    """
    disable_eager_execution()


def enable_v2_behavior() -> None:
    """As it is in the beginning.

    >>> enable_v2_behavior()
    >>> _tf.executing_eagerly()
    True
    """
    enable_eager_execution()


def _nothing(*args: Any, **kwargs: Any) -> None:
    """Said by TensorFlow 1 programs; it is so already, or makes no difference here.

    >>> enable_resource_variables()
    """


disable_v2_tensorshape = enable_v2_tensorshape = _nothing
disable_resource_variables = enable_resource_variables = _nothing
disable_tensor_equality = enable_tensor_equality = _nothing
disable_control_flow_v2 = enable_control_flow_v2 = _nothing


def executing_eagerly_outside_functions() -> bool:
    """Would an op be eager outside of the current trace?

    >>> executing_eagerly_outside_functions()
    True
    """
    with _graph.init_scope():
        return _context.here.graph is None


def control_flow_v2_enabled() -> bool:
    """Always.

    >>> control_flow_v2_enabled()
    True
    """
    return True


def resource_variables_enabled() -> bool:
    """Always.

    >>> resource_variables_enabled()
    True
    """
    return True


# ---- placeholders ----


def placeholder(dtype: Any, shape: Any = None, name: Optional[str] = None) -> Any:
    """A tensor that is fed when something is run. RuntimeError where ops are eager.

    >>> import plimsoll.tf as tf
    >>> with tf.Graph().as_default():
    ...     print(tf.compat.v1.placeholder(tf.float32, [None, 3], name="x").name)
    x:0
    """
    if _context.here.graph is None:
        raise RuntimeError("tf.placeholder() is not compatible with eager execution.")
    return _core.placeholder(_types.as_dtype(dtype), _types.TensorShape(shape), name)


def placeholder_with_default(input: Any, shape: Any, name: Optional[str] = None) -> Any:
    """A tensor that may be fed, and is `input` if it is not.

    >>> with _tf.Graph().as_default(), Session() as session:
    ...     x = placeholder_with_default(2, [])
    ...     session.run(x), session.run(x, {x: 5})
    (2, 5)
    """
    default = _core.convert(input)
    if _context.here.graph is None:
        return default
    made = placeholder(default.dtype, shape, name or "PlaceholderWithDefault")
    made.graph._defaults[_graph.name_of(made)] = default
    return made


# ---- graphs ----


def add_to_collection(name: str, value: Any) -> None:
    """Adds to one of the lists that the default graph keeps.

    >>> with _tf.Graph().as_default():
    ...     add_to_collection("mine", 1)
    ...     get_collection("mine")
    [1]
    """
    get_default_graph().add_to_collection(name, value)


def add_to_collections(names: Any, value: Any) -> None:
    """Adds to several of them.

    >>> with _tf.Graph().as_default():
    ...     add_to_collections(["a", "b"], 1)
    ...     get_collection("b")
    [1]
    """
    get_default_graph().add_to_collections(names, value)


def get_collection(key: str, scope: Optional[str] = None) -> List[Any]:
    """A copy of one of the default graph's lists; of those under a scope.

    >>> with _tf.Graph().as_default():
    ...     get_collection("empty")
    []
    """
    return get_default_graph().get_collection(key, scope)


def get_collection_ref(key: str) -> List[Any]:
    """The list itself, which can be changed.

    >>> with _tf.Graph().as_default():
    ...     get_collection_ref("mine").append(1)
    ...     get_collection("mine")
    [1]
    """
    return get_default_graph().get_collection_ref(key)


class name_scope:
    """Like tf.name_scope; `default_name` is for a `name` of None.

    >>> with name_scope(None, default_name="layer") as scope:
    ...     scope
    'layer/'
    """

    def __init__(self, name: Any, default_name: Optional[str] = None, values: Any = None) -> None:
        self._name = name if name is not None else default_name
        if self._name is not None and not isinstance(self._name, str):
            raise TypeError(f"name_scope: '{self._name}' is not a string")
        self._contexts: List[Any] = []

    def __enter__(self) -> str:
        self._contexts.append(_graph._scoped(self._name))
        return self._contexts[-1].__enter__()

    def __exit__(self, *exception: Any) -> None:
        self._contexts.pop().__exit__(*exception)


def get_seed(op_seed: Optional[int]) -> Any:
    """The default graph's seed, and the op's.

    >>> with _tf.Graph().as_default():
    ...     get_seed(3)
    (None, 3)
    """
    return get_default_graph().seed, op_seed


def set_random_seed(seed: Optional[int]) -> None:
    """Like tf.random.set_seed, for the graph that is entered as well.

    >>> set_random_seed(7)
    """
    if _context.here.graph is not None:
        _context.here.graph.seed = seed
    _tf.random.set_seed(seed)


def to_float(x: Any, name: Optional[str] = None) -> Any:
    """tf.cast to float32.

    >>> to_float(1).dtype
    tf.float32
    """
    return _tf.cast(x, _types.float32, name=name)


def to_double(x: Any, name: Optional[str] = None) -> Any:
    """tf.cast to float64.

    >>> to_double(1).dtype
    tf.float64
    """
    return _tf.cast(x, _types.float64, name=name)


def to_int32(x: Any, name: Optional[str] = None) -> Any:
    """tf.cast to int32.

    >>> to_int32(1.5).numpy()
    1
    """
    return _tf.cast(x, _types.int32, name=name)


def to_int64(x: Any, name: Optional[str] = None) -> Any:
    """tf.cast to int64.

    >>> to_int64(1.5).dtype
    tf.int64
    """
    return _tf.cast(x, _types.int64, name=name)


# ---- variables ----


class Variable(_variable.Variable):
    """tf.Variable, with the order of TensorFlow 1's arguments.

    >>> Variable(1.0, name="v").name
    'v:0'
    """

    def __init__(
        self,
        initial_value: Any = None,
        trainable: Optional[bool] = None,
        collections: Any = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: Optional[str] = None,
        variable_def: Any = None,
        dtype: Any = None,
        expected_shape: Any = None,
        import_scope: Optional[str] = None,
        constraint: Any = None,
        use_resource: Optional[bool] = None,
        synchronization: Any = _variable.VariableSynchronization.AUTO,
        aggregation: Any = _variable.VariableAggregation.NONE,
        shape: Any = None,
    ) -> None:
        super().__init__(
            initial_value,
            trainable,
            name=name,
            dtype=dtype,
            constraint=constraint,
            synchronization=synchronization,
            aggregation=aggregation,
            shape=shape,
            collections=collections,
        )


def global_variables(scope: Optional[str] = None) -> List[Any]:
    """All variables of the default graph.

    >>> with _tf.Graph().as_default():
    ...     v = Variable(1.0, name="v")
    ...     [one.name for one in global_variables()]
    ['v:0']
    """
    return get_collection(GLOBAL_VARIABLES, scope)


def local_variables(scope: Optional[str] = None) -> List[Any]:
    """Those in the collection of local ones.

    >>> with _tf.Graph().as_default():
    ...     local_variables()
    []
    """
    return get_collection(LOCAL_VARIABLES, scope)


def trainable_variables(scope: Optional[str] = None) -> List[Any]:
    """Those that were not made with trainable=False.

    >>> with _tf.Graph().as_default():
    ...     v = Variable(1.0, trainable=False)
    ...     trainable_variables()
    []
    """
    return get_collection(TRAINABLE_VARIABLES, scope)


def all_variables() -> List[Any]:
    """The old name of global_variables().

    >>> with _tf.Graph().as_default():
    ...     all_variables()
    []
    """
    return global_variables()


def variables_initializer(var_list: Any, name: str = "init") -> Any:
    """An operation that gives these variables their initial values; eagerly they have them.

    >>> with _tf.Graph().as_default(), Session() as session:
    ...     v = Variable(3)
    ...     session.run(variables_initializer([v]))
    ...     session.run(v)
    3
    """
    if _context.here.graph is None:
        return None
    return _graph.make_operation(name, [v.initializer for v in var_list])


def initialize_variables(var_list: Any, name: str = "init") -> Any:
    """The old name of variables_initializer().

    >>> initialize_variables([])
    """
    return variables_initializer(var_list, name)


def global_variables_initializer() -> Any:
    """An operation that gives all variables of the graph their initial values.

    >>> with _tf.Graph().as_default(), Session() as session:
    ...     v = Variable(3)
    ...     session.run(global_variables_initializer())
    ...     session.run(v)
    3
    """
    return variables_initializer(global_variables())


def initialize_all_variables() -> Any:
    """The old name of global_variables_initializer().

    >>> initialize_all_variables()
    """
    return global_variables_initializer()


def local_variables_initializer() -> Any:
    """The same for local variables.

    >>> local_variables_initializer()
    """
    return variables_initializer(local_variables())


def tables_initializer(name: str = "init_all_tables") -> Any:
    """An operation that does nothing: there are no tables.

    >>> tables_initializer()
    """
    return _graph.no_op(name)


def report_uninitialized_variables(var_list: Any = None, name: str = "report") -> Any:
    """NotImplementedError.

    >>> report_uninitialized_variables()
    Traceback (most recent call last):
        ...
    NotImplementedError: tf.compat.v1.report_uninitialized_variables: run the initializer, ...
    """
    raise NotImplementedError(
        "tf.compat.v1.report_uninitialized_variables: run the initializer, or ask "
        "session.has_variable(v)"
    )


def is_variable_initialized(variable: Any) -> Any:
    """Has it a value? An eager one has.

    >>> bool(is_variable_initialized(Variable(1)))
    True
    """
    return variable.is_initialized()


def assign(
    ref: Any, value: Any, validate_shape: Any = None, use_locking: Any = None, name: Any = None
) -> Any:
    """`ref` becomes `value`.

    >>> assign(Variable(1), 5).numpy()
    5
    """
    return ref.assign(value, name=name)


def assign_add(ref: Any, value: Any, use_locking: Any = None, name: Optional[str] = None) -> Any:
    """`value` is added to `ref`.

    >>> assign_add(Variable(1), 5).numpy()
    6
    """
    return ref.assign_add(value, name=name)


def assign_sub(ref: Any, value: Any, use_locking: Any = None, name: Optional[str] = None) -> Any:
    """`value` is taken from `ref`.

    >>> assign_sub(Variable(1), 5).numpy()
    -4
    """
    return ref.assign_sub(value, name=name)


# ---- signatures that TensorFlow 2 has changed ----


def py_func(
    func: Any, inp: Any, Tout: Any, stateful: bool = True, name: Optional[str] = None
) -> Any:
    """tf.numpy_function.

    >>> py_func(lambda x: x + 1, [[1.0]], _tf.float32).numpy().tolist()
    [2.0]
    """
    return _py_function.numpy_function(func, inp, Tout, stateful, name)


_EXAMPLES = {"reduce_any": "[[True]]", "reduce_all": "[[True]]"}


def _reduced(name: str) -> Any:
    def reduce(
        input_tensor: Any,
        axis: Any = None,
        keepdims: Optional[bool] = None,
        name: Optional[str] = None,
        reduction_indices: Any = None,
        keep_dims: Optional[bool] = None,
    ) -> Any:
        axis = reduction_indices if axis is None else axis
        keepdims = bool(keep_dims if keepdims is None else keepdims)
        return getattr(_tf, reduce.__name__)(input_tensor, axis, keepdims, name=name)

    reduce.__name__ = name
    reduce.__doc__ = f"""tf.{name}, which also knows the old names of its arguments.

    >>> {name}({_EXAMPLES.get(name, "[[2.0]]")}, reduction_indices=1, keep_dims=True).shape
    TensorShape([1, 1])
    """
    return reduce


reduce_sum = _reduced("reduce_sum")
reduce_mean = _reduced("reduce_mean")
reduce_max = _reduced("reduce_max")
reduce_min = _reduced("reduce_min")
reduce_prod = _reduced("reduce_prod")
reduce_any = _reduced("reduce_any")
reduce_all = _reduced("reduce_all")
reduce_logsumexp = _reduced("reduce_logsumexp")


def argmax(
    input: Any, axis: Any = None, name: Any = None, dimension: Any = None, output_type: Any = None
) -> Any:
    """tf.argmax, which also knows `dimension`.

    >>> int(argmax([1, 3, 2], dimension=0))
    1
    """
    axis = dimension if axis is None else axis
    return _tf.argmax(input, axis, output_type or _types.int64, name=name)


def argmin(
    input: Any, axis: Any = None, name: Any = None, dimension: Any = None, output_type: Any = None
) -> Any:
    """tf.argmin, which also knows `dimension`.

    >>> int(argmin([1, 3, 0], dimension=0))
    2
    """
    axis = dimension if axis is None else axis
    return _tf.argmin(input, axis, output_type or _types.int64, name=name)


def expand_dims(input: Any, axis: Any = None, name: Any = None, dim: Any = None) -> Any:
    """tf.expand_dims, which also knows `dim`.

    >>> expand_dims([1, 2], dim=0).shape
    TensorShape([1, 2])
    """
    return _tf.expand_dims(input, dim if axis is None else axis, name=name)


def squeeze(input: Any, axis: Any = None, name: Any = None, squeeze_dims: Any = None) -> Any:
    """tf.squeeze, which also knows `squeeze_dims`.

    >>> squeeze([[1, 2]], squeeze_dims=[0]).shape
    TensorShape([2])
    """
    return _tf.squeeze(input, squeeze_dims if axis is None else axis, name=name)


def cond(
    pred: Any, true_fn: Any = None, false_fn: Any = None, strict: bool = False,
    name: Optional[str] = None, fn1: Any = None, fn2: Any = None,
) -> Any:
    """tf.cond, which also knows `fn1` and `fn2`.

    >>> cond(True, fn1=lambda: 1, fn2=lambda: 2)
    1
    """
    return _tf.cond(pred, true_fn or fn1, false_fn or fn2, name)


def while_loop(
    cond: Any, body: Any, loop_vars: Any, shape_invariants: Any = None,
    parallel_iterations: int = 10, back_prop: bool = True, swap_memory: bool = False,
    name: Optional[str] = None, maximum_iterations: Any = None,
    return_same_structure: bool = False,
) -> Any:
    """tf.while_loop; what goes round alone comes back alone.

    >>> while_loop(lambda i: i < 10, lambda i: i + 1, [0]).numpy()
    10
    """
    out = _tf.while_loop(
        cond, body, loop_vars, shape_invariants, parallel_iterations, back_prop, swap_memory,
        maximum_iterations, name,
    )
    alone = type(out) in (list, tuple) and len(out) == 1
    return out[0] if alone and not return_same_structure else out


def gather(
    params: Any, indices: Any, validate_indices: Any = None, name: Optional[str] = None,
    axis: Any = None, batch_dims: int = 0,
) -> Any:
    """tf.gather, with the order of TensorFlow 1's arguments.

    >>> gather([5, 6, 7], [2, 0]).numpy().tolist()
    [7, 5]
    """
    return _tf.gather(params, indices, validate_indices, axis, batch_dims, name)


def transpose(
    a: Any, perm: Any = None, name: Optional[str] = "transpose", conjugate: bool = False
) -> Any:
    """tf.transpose, with the order of TensorFlow 1's arguments.

    >>> transpose([[1, 2]]).numpy().tolist()
    [[1], [2]]
    """
    return _tf.transpose(a, perm, conjugate, name)


def count_nonzero(
    input_tensor: Any = None, axis: Any = None, keepdims: Optional[bool] = None,
    dtype: Any = _types.int64, name: Optional[str] = None, reduction_indices: Any = None,
    keep_dims: Optional[bool] = None, input: Any = None,
) -> Any:
    """tf.math.count_nonzero, which also knows the old names of its arguments.

    >>> count_nonzero([[0, 1], [2, 3]], reduction_indices=1).numpy().tolist()
    [1, 2]
    """
    return _tf.math.count_nonzero(
        input if input_tensor is None else input_tensor,
        reduction_indices if axis is None else axis,
        keep_dims if keepdims is None else keepdims, dtype, name,
    )


def random_normal(
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = _types.float32, seed: Any = None,
    name: Any = None,
) -> Any:
    """tf.random.normal by its old name.

    >>> random_normal([2, 3]).shape
    TensorShape([2, 3])
    """
    return _tf.random.normal(shape, mean, stddev, dtype, seed, name)


def random_uniform(
    shape: Any, minval: Any = 0, maxval: Any = None, dtype: Any = _types.float32, seed: Any = None,
    name: Any = None,
) -> Any:
    """tf.random.uniform by its old name.

    >>> random_uniform([2, 3]).shape
    TensorShape([2, 3])
    """
    return _tf.random.uniform(shape, minval, maxval, dtype, seed, name)


def truncated_normal(
    shape: Any, mean: Any = 0.0, stddev: Any = 1.0, dtype: Any = _types.float32, seed: Any = None,
    name: Any = None,
) -> Any:
    """tf.random.truncated_normal by its old name.

    >>> truncated_normal([2, 3]).shape
    TensorShape([2, 3])
    """
    return _tf.random.truncated_normal(shape, mean, stddev, dtype, seed, name)


_OF_MATH = frozenset(
    "ceil digamma erf erfc is_finite is_inf is_nan lgamma log log1p log_sigmoid mod "
    "negative reciprocal rint rsqrt real xdivy xlogy logical_xor".split()
)
_OF_IO = frozenset(
    "read_file write_file decode_raw decode_base64 encode_base64 matching_files parse_example "
    "parse_single_example parse_tensor serialize_tensor FixedLenFeature VarLenFeature "
    "FixedLenSequenceFeature".split()
)


class _Logging:
    """tf.compat.v1.logging: levels are set and read; messages go to Python's logger."""

    DEBUG, INFO, WARN, ERROR, FATAL = 10, 20, 30, 40, 50

    def set_verbosity(self, v: Any) -> None:
        _tf.get_logger().setLevel(v)

    def get_verbosity(self) -> int:
        return _tf.get_logger().getEffectiveLevel()

    def __getattr__(self, name: str) -> Any:
        if name not in ("debug", "info", "warn", "warning", "error", "fatal", "log"):
            raise AttributeError(f"module 'tf.compat.v1.logging' has no attribute '{name}'")
        return getattr(_tf.get_logger(), "warning" if name == "warn" else name)


logging = _Logging()


class _Train:
    """tf.compat.v1.train: tf.train's names; its other names raise as missing."""

    def __getattr__(self, name: str) -> Any:
        try:
            return getattr(_tf.train, name)
        except AttributeError:
            raise _not_implemented.error("tf.compat.v1.train", name) from None


train = _Train()


class _NN:
    """tf.compat.v1.nn: tf.nn's names, and functions that had other arguments."""

    @staticmethod
    def dropout(
        x: Any, keep_prob: Any = None, noise_shape: Any = None, seed: Any = None,
        name: Optional[str] = None, rate: Any = None,
    ) -> Any:
        if (keep_prob is None) == (rate is None):
            raise ValueError("dropout: say `rate`, or `keep_prob`, and not both")
        return _tf.nn.dropout(x, 1 - keep_prob if rate is None else rate, noise_shape, seed, name)

    @staticmethod
    def softmax_cross_entropy_with_logits(
        _sentinel: Any = None, labels: Any = None, logits: Any = None, dim: int = -1,
        name: Optional[str] = None, axis: Optional[int] = None,
    ) -> Any:
        axis = dim if axis is None else axis
        return _tf.nn.softmax_cross_entropy_with_logits(labels, logits, axis, name)

    softmax_cross_entropy_with_logits_v2 = staticmethod(
        lambda labels, logits, axis=None, name=None, dim=None: (
            _tf.nn.softmax_cross_entropy_with_logits(
                labels, logits, -1 if axis is None and dim is None else axis if dim is None else dim,
                name)))

    @staticmethod
    def sparse_softmax_cross_entropy_with_logits(
        _sentinel: Any = None, labels: Any = None, logits: Any = None, name: Optional[str] = None
    ) -> Any:
        return _tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits, name)

    @staticmethod
    def sigmoid_cross_entropy_with_logits(
        _sentinel: Any = None, labels: Any = None, logits: Any = None, name: Optional[str] = None
    ) -> Any:
        return _tf.nn.sigmoid_cross_entropy_with_logits(labels, logits, name)

    @staticmethod
    def xw_plus_b(x: Any, weights: Any, biases: Any, name: Optional[str] = None) -> Any:
        return _tf.add(_tf.matmul(x, weights), biases, name)

    def __getattr__(self, name: str) -> Any:
        return getattr(_tf.nn, name)


nn = _NN()


class _Gfile:
    """tf.compat.v1.gfile: tf.io.gfile by its old names."""

    _NAMES = {
        "Copy": "copy", "DeleteRecursively": "rmtree", "Exists": "exists", "FastGFile": "GFile",
        "GFile": "GFile", "Glob": "glob", "IsDirectory": "isdir", "ListDirectory": "listdir",
        "MakeDirs": "makedirs", "MkDir": "mkdir", "Open": "GFile", "Remove": "remove",
        "Rename": "rename", "Stat": "stat", "Walk": "walk",
    }  # fmt: skip

    def __getattr__(self, name: str) -> Any:
        if name not in self._NAMES:
            raise AttributeError(f"module 'tf.compat.v1.gfile' has no attribute '{name}'")
        return getattr(_tf.io.gfile, self._NAMES[name])


gfile = _Gfile()


class _PythonIO:
    """tf.compat.v1.python_io: the names of tf.io that write and compress records."""

    def __getattr__(self, name: str) -> Any:
        if name == "tf_record_iterator":
            raise NotImplementedError(
                "tf.compat.v1.python_io.tf_record_iterator: use tf.data.TFRecordDataset"
            )
        if name not in ("TFRecordWriter", "TFRecordOptions"):
            raise AttributeError(f"module 'tf.compat.v1.python_io' has no attribute '{name}'")
        return getattr(_tf.io, name)


python_io = _PythonIO()


def div(x: Any, y: Any, name: Optional[str] = None) -> Any:
    """Divides as Python 2: integers give an integer.

    >>> div(7, 2).numpy(), div(7.0, 2.0).numpy()
    (3, 3.5)
    """
    x = _core.convert(x)
    return (_tf.floordiv if x.dtype.is_integer else _tf.divide)(x, y, name)


def Print(
    input_: Any, data: Any, message: Optional[str] = None, first_n: Optional[int] = None,
    summarize: Optional[int] = None, name: Optional[str] = None,
) -> Any:
    """`input_`; where it is computed, `data` is printed on stderr.

    >>> with _tf.Graph().as_default():
    ...     Print(_tf.constant(1), [2], "two: ").name
    'Identity:0'
    """
    if first_n is not None:
        raise NotImplementedError("tf.compat.v1.Print with 'first_n'")
    shown = _tf.print(message or "", *data, summarize=3 if summarize is None else summarize)
    with _tf.control_dependencies([] if shown is None else [shown]):
        return _tf.identity(input_, name=name)


# Names of TensorFlow 1 that are elsewhere now, or have another name there.
_ELSEWHERE = {
    "GIT_VERSION": "version.GIT_VERSION",
    "OpError": "errors.OpError",
    "VERSION": "version.VERSION",
    "cholesky": "linalg.cholesky",
    "cross": "linalg.cross",
    "decode_compressed": "io.decode_compressed",
    "diag": "linalg.tensor_diag",
    "diag_part": "linalg.tensor_diag_part",
    "div_no_nan": "math.divide_no_nan",
    "floor_div": "floordiv",
    "global_norm": "linalg.global_norm",
    "lin_space": "linspace",
    "matrix_band_part": "linalg.band_part",
    "matrix_determinant": "linalg.det",
    "matrix_diag": "linalg.diag",
    "matrix_diag_part": "linalg.diag_part",
    "matrix_inverse": "linalg.inv",
    "matrix_set_diag": "linalg.set_diag",
    "matrix_solve": "linalg.solve",
    "matrix_solve_ls": "linalg.lstsq",
    "matrix_transpose": "linalg.matrix_transpose",
    "matrix_triangular_solve": "linalg.triangular_solve",
    "qr": "linalg.qr",
    "random_crop": "image.random_crop",
    "random_shuffle": "random.shuffle",
    "reduce_join": "strings.reduce_join",
    "regex_replace": "strings.regex_replace",
    "reverse_v2": "reverse",
    "self_adjoint_eig": "linalg.eigh",
    "self_adjoint_eigvals": "linalg.eigvalsh",
    "sparse_reorder": "sparse.reorder",
    "sparse_tensor_to_dense": "sparse.to_dense",
    "string_join": "strings.join",
    "string_strip": "strings.strip",
    "string_to_hash_bucket": "strings.to_hash_bucket",
    "string_to_hash_bucket_fast": "strings.to_hash_bucket_fast",
    "string_to_hash_bucket_strong": "strings.to_hash_bucket_strong",
    "string_to_number": "strings.to_number",
    "svd": "linalg.svd",
    "tensor_scatter_add": "tensor_scatter_nd_add",
    "tensor_scatter_sub": "tensor_scatter_nd_sub",
    "tensor_scatter_update": "tensor_scatter_nd_update",
    "trace": "linalg.trace",
    "where_v2": "where",
    **{
        name: "math." + name
        for name in (
            "accumulate_n bincount confusion_matrix conj cumprod expm1 floormod "
            "invert_permutation is_non_decreasing is_strictly_increasing segment_max segment_mean "
            "segment_min segment_prod segment_sum squared_difference unsorted_segment_max "
            "unsorted_segment_mean unsorted_segment_min unsorted_segment_prod "
            "unsorted_segment_sqrt_n unsorted_segment_sum"
        ).split()
    },
    **{
        name: "debugging." + name
        for name in (
            "assert_greater_equal assert_integer assert_less_equal assert_near assert_negative "
            "assert_non_negative assert_non_positive assert_none_equal assert_positive "
            "assert_proper_iterable assert_rank_at_least assert_rank_in assert_same_float_dtype "
            "assert_scalar assert_type check_numerics is_numeric_tensor"
        ).split()
    },
}


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'tf.compat.v1' has no attribute '{name}'")
    if name == "data":
        return _data()
    if name in _OF_MATH:
        return getattr(_tf.math, name)
    if name in _OF_IO:
        return getattr(_tf.io, name)
    if name in _ELSEWHERE:
        module, _, now = _ELSEWHERE[name].rpartition(".")
        return getattr(getattr(_tf, module) if module else _tf, now)
    try:
        return getattr(_tf, name)
    except AttributeError:
        raise _not_implemented.error("tf.compat.v1", name) from None


def _data() -> Any:
    """tf.compat.v1.data: tf.data's, with one-shot and initializable iterators if there are any."""
    import importlib

    try:
        value = importlib.import_module("plimsoll.tf.data._v1")
    except ModuleNotFoundError:
        value = _tf.data
    globals()["data"] = value
    return value


_FOR_US = ("Any", "List", "Optional", "annotations")

__all__ = sorted(
    {name for name in globals() if not name.startswith("_") and name not in _FOR_US}
    | set(_tf.__all__)
)


def __dir__() -> List[str]:
    return __all__
