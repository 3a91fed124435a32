# SPDX-License-Identifier: Apache-2.0
"""tf.io.gfile: files of this machine, with TensorFlow's errors."""
from __future__ import annotations

import glob as _glob
import os
import shutil
from contextlib import contextmanager
from typing import Any, Iterator

from plimsoll import errors

__all__ = [
    "GFile", "copy", "exists", "get_registered_schemes", "glob", "isdir", "join", "listdir",
    "makedirs", "mkdir", "remove", "rename", "rmtree", "stat", "walk",
]


@contextmanager
def os_errors() -> Iterator[None]:
    """OSErrors as TensorFlow's: a file that is not there is a NotFoundError."""
    try:
        yield
    except errors.OpError:
        raise
    except OSError as error:
        kind = errors._by_code.get(-(error.errno or 0), errors.UnknownError)
        raise kind(None, None, f"{error.filename}; {error.strerror}") from error


def _path(path: Any) -> str:
    """Text, bytes, os.PathLike or a scalar tensor as a path."""
    path = path.numpy() if hasattr(path, "numpy") else path
    path = os.fspath(path)
    return path.decode() if isinstance(path, bytes) else path


class GFile:
    """A file: opened when it is first used. "r" gives text, "rb" bytes.

    >>> with tf.io.gfile.GFile('/dev/null') as f:
    ...     f.read()
    ''
    """

    def __init__(self, name: Any, mode: str = "r") -> None:
        if mode not in ("r", "w", "a", "r+", "w+", "a+", "rb", "wb", "ab", "rb+", "wb+", "ab+",
                        "r+b", "w+b", "a+b"):
            raise errors.InvalidArgumentError(None, None, f"mode '{mode}' is not one of a file")
        self.name, self.mode = _path(name), mode
        self._opened: Any = None

    @property
    def _file(self) -> Any:
        if self._opened is None:
            with os_errors():
                self._opened = open(self.name, self.mode)
        return self._opened

    def read(self, n: int = -1) -> Any:
        """So much, or all that is left."""
        with os_errors():
            return self._file.read(n)

    def readline(self) -> Any:
        """The next line, with its end."""
        return self._file.readline()

    def readlines(self) -> list[Any]:
        """All lines that are left."""
        return self._file.readlines()

    def write(self, file_content: Any) -> None:
        """Appends text, or bytes in a file of bytes."""
        with os_errors():
            if "b" in self.mode and isinstance(file_content, str):
                file_content = file_content.encode()
            elif "b" not in self.mode and isinstance(file_content, bytes):
                file_content = file_content.decode()
            self._file.write(file_content)

    def seek(self, offset: int | None = None, whence: int = 0, position: int | None = None) -> None:
        """Goes on there."""
        self._file.seek(position if offset is None else offset, whence)

    def tell(self) -> int:
        """The current position."""
        return self._file.tell()

    def seekable(self) -> bool:
        """True."""
        return True

    def size(self) -> int:
        """Bytes of the file."""
        return stat(self.name).length

    def flush(self) -> None:
        """Passes buffered data to the system."""
        if self._opened is not None:
            self._opened.flush()

    def close(self) -> None:
        """No more is done with it."""
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def __enter__(self) -> GFile:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        return iter(self._file)

    def __next__(self) -> Any:
        return next(self._file)


class FileStatistics:
    """The result of stat()."""

    def __init__(self, found: os.stat_result) -> None:
        self.length = found.st_size
        self.mtime_nsec = found.st_mtime_ns
        self.is_directory = (found.st_mode & 0o170000) == 0o040000


def exists(path: Any) -> bool:
    """Is it there?

    >>> tf.io.gfile.exists('/dev/null')
    True
    """
    return os.path.exists(_path(path))


def isdir(path: Any) -> bool:
    """Is it a folder?

    >>> tf.io.gfile.isdir('/dev/null')
    False
    """
    return os.path.isdir(_path(path))


def glob(pattern: Any) -> list[str]:
    """Paths that a pattern, or several, describe; in order.

    >>> tf.io.gfile.glob('/dev/nul[l]')
    ['/dev/null']
    """
    patterns = list(pattern) if isinstance(pattern, (list, tuple)) else [pattern]
    return sorted(path for one in patterns for path in _glob.glob(_path(one)))


def listdir(path: Any) -> list[str]:
    """Names in a folder.

    >>> 'null' in tf.io.gfile.listdir('/dev')
    True
    """
    if not os.path.isdir(_path(path)):
        raise errors.NotFoundError(None, None, "Could not find directory " + _path(path))
    return sorted(os.listdir(_path(path)))


def walk(top: Any, topdown: bool = True, onerror: Any = None) -> Iterator[tuple[str, list, list]]:
    """(folder, its folders, its files), from `top` down.

    >>> next(tf.io.gfile.walk('/dev'))[0]
    '/dev'
    """
    return os.walk(_path(top), topdown, onerror)


def join(path: Any, *paths: Any) -> str:
    """Parts as one path.

    >>> tf.io.gfile.join('a', 'b')
    'a/b'
    """
    return os.path.join(_path(path), *map(_path, paths))


def mkdir(path: Any) -> None:
    """Makes a folder, whose own folder is there."""
    with os_errors():
        os.mkdir(_path(path))


def makedirs(path: Any) -> None:
    """Makes a folder, and those that it is in."""
    with os_errors():
        os.makedirs(_path(path), exist_ok=True)


def remove(path: Any) -> None:
    """Takes a file away."""
    with os_errors():
        os.remove(_path(path))


def rmtree(path: Any) -> None:
    """Takes a folder away, with all that is in it."""
    with os_errors():
        shutil.rmtree(_path(path))


def rename(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Gives a file another name; AlreadyExistsError if that is taken."""
    _refuse_taken(dst, overwrite)
    with os_errors():
        os.replace(_path(src), _path(dst))


def copy(src: Any, dst: Any, overwrite: bool = False) -> None:
    """Copies a file; AlreadyExistsError if the name is taken."""
    _refuse_taken(dst, overwrite)
    with os_errors():
        shutil.copyfile(_path(src), _path(dst))


def _refuse_taken(path: Any, overwrite: bool) -> None:
    if not overwrite and os.path.exists(_path(path)):
        raise errors.AlreadyExistsError(None, None, f"'{_path(path)}' already exists")


def stat(path: Any) -> FileStatistics:
    """Its length, and when it was changed.

    >>> tf.io.gfile.stat('/dev').is_directory
    True
    """
    with os_errors():
        return FileStatistics(os.stat(_path(path)))


def get_registered_schemes() -> list[str]:
    """The schemes that paths may begin with: none.

    >>> tf.io.gfile.get_registered_schemes()
    ['']
    """
    return [""]
