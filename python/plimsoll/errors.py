# SPDX-License-Identifier: Apache-2.0
"""Exceptions: TensorFlow's classes, which derive from Python's own as well.

A refusal of the budget is a ResourceExhaustedError and a MemoryError, a shape that does not fit an
InvalidArgumentError and a ValueError: code that knows only Python's exceptions catches them, too.

The module can be called: `plimsoll.errors(dataset)` is a table of the elements that the dataset's
last pass skipped.

    >>> from plimsoll import errors
    >>> try:
    ...     raise errors.NotFoundError(None, None, "no file 'a.npy'")
    ... except FileNotFoundError as error:
    ...     print(error)
    no file 'a.npy'
"""
from __future__ import annotations

import errno
import sys
import types
from typing import Any, Dict, Optional, Tuple, Type

__all__ = [
    "AbortedError",
    "AlreadyExistsError",
    "CancelledError",
    "DataLossError",
    "DeadlineExceededError",
    "FailedPreconditionError",
    "InaccessibleTensorError",
    "InternalError",
    "InvalidArgumentError",
    "NotFoundError",
    "OpError",
    "OperatorNotAllowedInGraphError",
    "OutOfRangeError",
    "PermissionDeniedError",
    "ResourceExhaustedError",
    "UnauthenticatedError",
    "UnavailableError",
    "UnimplementedError",
    "UnknownError",
]

OK = 0
CANCELLED = 1
UNKNOWN = 2
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
ALREADY_EXISTS = 6
PERMISSION_DENIED = 7
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
ABORTED = 10
OUT_OF_RANGE = 11
UNIMPLEMENTED = 12
INTERNAL = 13
UNAVAILABLE = 14
DATA_LOSS = 15
UNAUTHENTICATED = 16


_FIELDS = ("path", "offset", "element", "stage", "_code")


class OpError(Exception):
    """An op, a run or a dataset failed. `message` says why, `error_code` is the kind of failure.

    Errors of the library have attributes for their subject, each None if unknown:

    - `stage`: the dataset that made the bad element, by its name or kind ("map");
    - `element`: the index of the element there;
    - `path`: the file that it was read from;
    - `offset`: the byte of that file where its record begins, or, if that is not known, the byte of
      the data that could not be decoded;
    - `op`: the op that failed ("decode_image").

    The exception of a user's own function is the `__cause__`.

    >>> error = InvalidArgumentError(None, None, "shapes [2] and [3] do not broadcast")
    >>> error.message, error.error_code == INVALID_ARGUMENT, error.path
    ('shapes [2] and [3] do not broadcast', True, None)
    """

    _kind = UNKNOWN
    _code = -errno.EIO  # the library's; an error that the library raised has its own
    path: Optional[str] = None
    offset: Optional[int] = None
    element: Optional[int] = None
    stage: Optional[str] = None

    def __init__(
        self,
        node_def: Any = None,
        op: Any = None,
        message: Optional[str] = None,
        error_code: Any = None,
        *args: Any,
    ) -> None:
        if message is None:  # one argument alone is the message, as of any exception
            node_def, message = None, "" if node_def is None else str(node_def)
        super().__init__(message)
        self._node_def = node_def
        self._op = op
        self._message = message
        self._error_code = error_code if isinstance(error_code, int) else self._kind

    @property
    def message(self) -> str:
        return self._message

    @property
    def op(self) -> Any:
        """The op that failed, where that is known, else None."""
        return self._op

    @property
    def node_def(self) -> Any:
        return self._node_def

    @property
    def error_code(self) -> int:
        return self._error_code

    @property
    def experimental_payloads(self) -> Dict[str, bytes]:
        return {}

    def __str__(self) -> str:
        return self._message

    def __reduce__(self) -> Tuple[Any, ...]:
        about = {name: self.__dict__[name] for name in _FIELDS if name in self.__dict__}
        return type(self), (None, self._op, self._message), about


class CancelledError(OpError):
    """It was stopped before it was done."""

    _kind = CANCELLED


class UnknownError(OpError, RuntimeError):
    """Any other error: most exceptions of functions that run inside of a dataset."""

    _kind = UNKNOWN


class InvalidArgumentError(OpError, ValueError):
    """Shapes, dtypes or values that do not fit."""

    _kind = INVALID_ARGUMENT


class DeadlineExceededError(OpError, TimeoutError):
    """It took longer than it was given."""

    _kind = DEADLINE_EXCEEDED


class NotFoundError(OpError, FileNotFoundError):
    """A file that is not there."""

    _kind = NOT_FOUND


class AlreadyExistsError(OpError, FileExistsError):
    """Something that is there already."""

    _kind = ALREADY_EXISTS


class PermissionDeniedError(OpError, PermissionError):
    """A file that may not be read or written."""

    _kind = PERMISSION_DENIED


class ResourceExhaustedError(OpError, MemoryError):
    """It does not fit into the budget, or onto the disk. Nothing was allocated for it."""

    _kind = RESOURCE_EXHAUSTED


class FailedPreconditionError(OpError, RuntimeError):
    """Something has to be done first: a variable is not initialized."""

    _kind = FAILED_PRECONDITION


class AbortedError(OpError, RuntimeError):
    """It was given up."""

    _kind = ABORTED


class OutOfRangeError(OpError, IndexError):
    """Past the end, as of a dataset."""

    _kind = OUT_OF_RANGE


class UnimplementedError(OpError, NotImplementedError):
    """It cannot be done here."""

    _kind = UNIMPLEMENTED


class InternalError(OpError, RuntimeError):
    """A mistake of the runtime's own."""

    _kind = INTERNAL


class UnavailableError(OpError, RuntimeError):
    """Not now."""

    _kind = UNAVAILABLE


class DataLossError(OpError, OSError):
    """A file that is corrupt or cut off."""

    _kind = DATA_LOSS


class UnauthenticatedError(OpError, PermissionError):
    """The caller is not authenticated."""

    _kind = UNAUTHENTICATED


class OperatorNotAllowedInGraphError(TypeError):
    """The program reads a value (`if x > 0:`, `float(x)`) that does not exist yet, during tracing."""


class InaccessibleTensorError(ValueError):
    """A tensor of one function, used in another that cannot see it."""


# By the library's codes: errno's, and its own from plimsoll/error.h. The extension reads this.
_by_code: Dict[int, Type[OpError]] = {
    -errno.EINVAL: InvalidArgumentError,
    -errno.ENODEV: InvalidArgumentError,  # a device that is not there
    -5002: InvalidArgumentError,  # PL_EFORMAT
    -errno.EOVERFLOW: InvalidArgumentError,  # a shape of more bytes than can be counted
    -errno.ENAMETOOLONG: InvalidArgumentError,
    -5001: ResourceExhaustedError,  # PL_EBUDGET
    -errno.ENOMEM: ResourceExhaustedError,
    -errno.ENOSPC: ResourceExhaustedError,
    -errno.EDQUOT: ResourceExhaustedError,
    -errno.EMFILE: ResourceExhaustedError,
    -errno.ENFILE: ResourceExhaustedError,
    -5005: ResourceExhaustedError,  # PL_EFULL
    -errno.ENOENT: NotFoundError,
    -errno.ENOTDIR: NotFoundError,
    -5004: DataLossError,  # PL_ECORRUPT
    -errno.ECANCELED: CancelledError,
    -errno.ETIMEDOUT: DeadlineExceededError,
    -errno.EACCES: PermissionDeniedError,
    -errno.EPERM: PermissionDeniedError,
    -errno.EROFS: PermissionDeniedError,
    -errno.ENOTSUP: UnimplementedError,
    -errno.EEXIST: AlreadyExistsError,
    -errno.ERANGE: OutOfRangeError,
    -5003: FailedPreconditionError,  # PL_EVERSION
    -errno.ESTALE: FailedPreconditionError,
    -errno.EISDIR: FailedPreconditionError,
    -errno.EBUSY: FailedPreconditionError,  # another process writes that file
    -errno.ECHILD: FailedPreconditionError,  # of the process that this one was forked from
}

for _code, _class in reversed(list(_by_code.items())):
    _class._code = _code

_by_error_code: Dict[int, Type[OpError]] = {cls._kind: cls for cls in OpError.__subclasses__()}


def exception_type_from_error_code(error_code: int) -> Type[OpError]:
    """The class of one of TensorFlow's codes.

    >>> exception_type_from_error_code(OUT_OF_RANGE).__name__
    'OutOfRangeError'
    """
    return _by_error_code[error_code]


def error_code_from_exception_type(cls: Type[OpError]) -> int:
    """The reverse.

    >>> error_code_from_exception_type(DataLossError) == DATA_LOSS
    True
    """
    return cls._kind


class _Callable(types.ModuleType):
    """The module, which `plimsoll.errors(dataset)` calls."""

    def __call__(self, dataset: Any) -> Any:
        from . import _introspection

        return _introspection.errors_of(dataset)


sys.modules[__name__].__class__ = _Callable
