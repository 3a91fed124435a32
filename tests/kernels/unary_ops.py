# SPDX-License-Identifier: Apache-2.0
"""Every elementwise op of one input, with what NumPy makes of it. A new op is a row here: the tests of
kernels, sessions, devices and random graphs all take their ops from this table."""

import ctypes
import ctypes.util
import typing

import numpy as np

INTEGERS = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")


class Op(typing.NamedTuple):
    takes: str  # as graph/ops.def has it
    function: typing.Callable  # of arrays; where `units` is not 0, of long doubles
    units: int = 0  # results are so many units of the last place off at most; 0: exact
    f32: tuple = ()  # where `units` is not 0: an interval where it is interesting in float32
    f64: tuple = ()  # and in float64


def relu(x):
    return np.maximum(x, x.dtype.type(0))


def libm(name):
    """What NumPy lacks. Rounded to a double on its way, which is half a unit."""

    def function(x):
        made = getattr(ctypes.CDLL(ctypes.util.find_library("m")), name)
        made.restype, made.argtypes = ctypes.c_longdouble, [ctypes.c_longdouble]
        return np.array([made(float(value)) for value in x.ravel()], "g").reshape(x.shape)

    return function


OPS = {
    "neg": Op("NUMBERS", np.negative),
    "abs": Op("NUMBERS", np.abs),
    "square": Op("NUMBERS", np.square),
    "sign": Op("NUMBERS", np.sign),
    "relu": Op("NUMBERS", relu),
    "sqrt": Op("FLOATS", np.sqrt),
    "rsqrt": Op("FLOATS", lambda x: 1 / np.sqrt(x), 2, (0, 9), (0, 9)),
    "reciprocal": Op("FLOATS", np.reciprocal),
    "exp": Op("FLOATS", np.exp, 2, (-110, 90), (-750, 711)),
    "expm1": Op("FLOATS", np.expm1, 2, (-20, 90), (-40, 711)),
    "log": Op("FLOATS", np.log, 2, (0, 3), (0, 3)),
    "log1p": Op("FLOATS", np.log1p, 2, (-1, 3), (-1, 3)),
    "sin": Op("FLOATS", np.sin, 2, (-70000, 70000), (-1000, 1000)),
    "cos": Op("FLOATS", np.cos, 2, (-70000, 70000), (-1000, 1000)),
    "tan": Op("FLOATS", np.tan, 2, (-200, 200), (-100, 100)),
    "asin": Op("FLOATS", np.arcsin, 2, (-1, 1), (-1, 1)),
    "acos": Op("FLOATS", np.arccos, 2, (-1, 1), (-1, 1)),
    "atan": Op("FLOATS", np.arctan, 2, (-5, 5), (-5, 5)),
    "sinh": Op("FLOATS", np.sinh, 2, (-90, 90), (-711, 711)),
    "cosh": Op("FLOATS", np.cosh, 2, (-90, 90), (-711, 711)),
    "tanh": Op("FLOATS", np.tanh, 2, (-10, 10), (-20, 20)),
    "asinh": Op("FLOATS", np.arcsinh, 2, (-1e20, 1e20), (-1e160, 1e160)),
    "acosh": Op("FLOATS", np.arccosh, 2, (1, 9), (1, 9)),
    "atanh": Op("FLOATS", np.arctanh, 2, (-1, 1), (-1, 1)),
    "sigmoid": Op("FLOATS", lambda x: 1 / (1 + np.exp(-x)), 3, (-110, 30), (-750, 40)),
    "erf": Op("FLOATS", libm("erfl"), 2, (-4, 4), (-6, 6)),
    "erfc": Op("FLOATS", libm("erfcl"), 3, (-4, 11), (-6, 28)),
    "floor": Op("FLOATS", np.floor),
    "ceil": Op("FLOATS", np.ceil),
    "round": Op("FLOATS", np.rint),
    "is_nan": Op("FLOATS", np.isnan),
    "is_inf": Op("FLOATS", np.isinf),
    "is_finite": Op("FLOATS", np.isfinite),
    "logical_not": Op("UNTEXT", np.logical_not),
    "bitwise_not": Op("BITS", np.invert),
}


def dtypes_of(op, floats):
    """Names of the dtypes that an op takes, of floats only these."""
    return {
        "FLOATS": (*floats,),
        "NUMBERS": (*floats, *INTEGERS),
        "BITS": (*INTEGERS, "bool"),
        "UNTEXT": (*floats, *INTEGERS, "bool"),
    }[op.takes]


def of_its_dtype(op):
    """The op's function of arrays of any dtype that it takes, rounded to that."""
    if op.units == 0:
        return op.function

    def function(x):
        with np.errstate(all="ignore"):
            return op.function(x.astype("g")).astype(x.dtype)

    return function
