#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes what libFuzzer begins with: FOLDER/NAME/ has small files for the target NAME, and
FOLDER/NAME.dict words, where they help. The same in every run.

    tests/fuzz/make_corpus.py TESTS FOLDER      TESTS: where fuzz_NAME are, in a build

Some are made by the fuzz tests themselves, which know this project's own formats; the rest by the
tools that people use, so that what is read here is not only what was written here. Whole ones, and
some that are cut off or end in another byte. What a fuzzer once found is in tests/fuzz/corpus/.
"""

import gzip
import importlib.metadata
import io
import json
import pathlib
import random
import shutil
import struct
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
import zlib

import numpy as np
from PIL import Image

N_MADE = 48  # inputs of each fuzz test
FILE_BYTES_MAX = 20_000  # small inputs are tried more often

DICTIONARIES = {
    "csv": ['\\"', '\\"\\"', ",", ";", "\\x0d\\x0a", "\\x0a", 'n\\"', "1e-400", "2147483648", "nan"],
    "json": ["{", "}", "[", "]", ":", ",", '\\"', "true", "false", "null", "1e5", "\\\\u00e9"],
    "npy": ["'descr'", "'fortran_order'", "'shape'", "True", "False", "'<f4'", "'|S7'", "(2, 3)"],
    "tar": ["ustar\\x0000", "ustar  \\x00", "path=", "size=", "GNU.sparse.major=1", "././@LongLink"],
    "jpeg": ["\\xff\\xc0", "\\xff\\xc2", "\\xff\\xc4", "\\xff\\xda", "\\xff\\xdb", "\\xff\\xdd"]
    + ["\\xff\\xd0", "\\xff\\xd9", "Adobe", "JFIF", "Exif"],
    "png": ["IHDR", "IDAT", "IEND", "PLTE", "tRNS", "gAMA", "iCCP", "acTL", "\\x89PNG"],
    "zip": ["PK\\x01\\x02", "PK\\x03\\x04", "PK\\x05\\x06", "PK\\x06\\x06", "PK\\x06\\x07"]
    + ["\\xff\\xff\\xff\\xff", "\\x01\\x00\\x1c\\x00"],
    "elf": ["\\x7fELF", "GNU\\x00", "GLIBC_2.34", "libc.so.6"],
    "package": ["Requires-Dist: ", "Tag: ", "python_version", "platform_machine", "extra", " and "]
    + [" or ", "not in ", "==", "~=", ".*", ".dist-info", "rc1", ".post2", ".dev3", "+cu126", "1!"]
    + ["cuda: ", "cuda_version'", "cuda_compute_capabilities'", "is_cuda_build', False"],
    "venv": ["home = ", "version_info", "include-system-site-packages", "import ", "/", ".."],
    "rules": ["kind,package,versions,where,needs,says,source", '\\"\\"', ">=2.1 <2.4", "alias"],
    "quarantine": ['\\"from\\"', '\\"from_hex\\"', '\\"to\\"', "000001-", "/..", "2f2e2e"],
    "report": ['\\"verdict\\"', '\\"memory\\"', '\\"\\\\u001b[31m\\"', "null", "1e300", "r-xp 00000000"],
    "kernelspec": ['\\"argv\\"', '\\"metadata\\"', '\\"plimsoll\\"', '\\"twin_of\\"', '\\"--\\"', "\\x1b"],
    "lines": ["\\x0d\\x0a", "\\xe2\\x82\\xac", "\\xf0\\x9f\\x98\\x80", "\\xed\\xa0\\x80"],
}


def npy_files():
    rng = np.random.default_rng(1)
    arrays = [np.arange(6).astype(dtype).reshape(2, 3) for dtype in "?bBhHiIlLefdFD"]
    arrays += [np.asfortranarray(rng.random((3, 4))), np.arange(4, dtype=">i4"), np.float32(3)]
    arrays += [np.zeros((0, 5)), np.array([b"some", b"bytes"]), np.array(["text", "é"])]
    arrays += [np.zeros(2, dtype=[("a", "<i4"), ("b", "<f8", (2,))]), np.ones((1,) * 12)]
    arrays += [np.zeros(2, dtype=[("name with ü", "<i4")]), np.array(["2020-01-01"], "M8[D]")]
    for array in arrays:
        for version in ((1, 0), (2, 0), (3, 0)):
            out = io.BytesIO()
            try:
                np.lib.format.write_array(out, np.asanyarray(array), version=version)
            except (UnicodeEncodeError, ValueError):
                continue  # a name that this version cannot write
            yield out.getvalue()


def frame(data):
    def crc(piece):
        value = 0xFFFFFFFF
        for byte in piece:
            value ^= byte
            for _ in range(8):
                value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        value ^= 0xFFFFFFFF
        return struct.pack("<I", ((value >> 15 | value << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    length = struct.pack("<Q", len(data))
    return length + crc(length) + data + crc(data)


def example(**features):
    """As protobuf writes it: a map of names to lists."""

    def field(number, data):
        assert len(data) < 128
        return bytes([number << 3 | 2, len(data)]) + data

    def kind(values):
        if isinstance(values[0], bytes):
            return field(1, b"".join(field(1, value) for value in values))
        if isinstance(values[0], float):
            return field(2, field(1, struct.pack(f"<{len(values)}f", *values)))
        return field(3, field(1, bytes(values)))

    entries = [field(1, name.encode()) + field(2, kind(v)) for name, v in features.items()]
    return field(1, b"".join(field(1, entry) for entry in entries))


EXAMPLES = (
    example(label=[1], x=[1.5, -2.0], name=[b"a", b""]),
    example(label=[3, 4, 5], image=[b"some bytes"]),
    b"",
)
RECORDS = (
    b"",
    frame(b""),
    b"".join(frame(one) for one in EXAMPLES),
    frame(b"x" * 300) + frame(b"y" * 20),
)


def packed_files():
    for data in (*RECORDS, b"text that is text that is text\n" * 20, bytes(3000)):
        for level in (0, 1, 9):
            yield 0, gzip.compress(data, level, mtime=0)
            yield 1, zlib.compress(data, level)
    named = io.BytesIO()
    with gzip.GzipFile("a name", "wb", mtime=0, fileobj=named) as to:
        to.write(b"named")
    yield 0, named.getvalue()
    yield 0, gzip.compress(b"one", mtime=0) + gzip.compress(b"two", mtime=0) + bytes(10)
    fixed = zlib.compressobj(9, zlib.DEFLATED, 15, 9, zlib.Z_FIXED)
    yield 1, fixed.compress(b"fixed codes, fixed codes") + fixed.flush()


CSV_FILES = (
    b"1,2.5,x,4,5\n2,nan,y,-1e5,6\n",
    b'1,2,"a ""quoted"" one, with\nlines",4,5\r\n',
    b"1;2;x;4;5;6;7\r\n;;;;;;\r\n",
    b'1,2,open "quote" within,4,5\n',
    b'"1","2","3","4","5"',
    b"\xef\xbb\xbf1,2,x,4,5\n\n\n1,2,x,4,5\r",
    b'1,2,"not closed,4,5\n1,2,x,4,5\n',
)
TEXTS = (
    b"one\ntwo\r\nthree",
    b"\xef\xbb\xbfw\xc3\xb6rter \xe2\x82\xac \xf0\x9f\x98\x80\n",
    b"\n\n\r\n\r",
    b"bad \xff \xc3( \xed\xa0\x80 \xf5\n",
    "utf-16\n".encode("utf-16"),
)
JSON_FILES = (
    json.dumps({"a": [1, -2.5, 1e300, True, None], "ü": {"n\n": "\u20ac"}}).encode(),
    json.dumps([[[[[]]]], {}, "\ud83d\ude00", 0.1], ensure_ascii=False, indent=1).encode(
        "utf-8", "surrogatepass"
    ),
    b'{"a": 1}\n{"a": 2}\n[]\n',
    b'"\\ud83d\\ude00 \\u0000"',
    b"\xef\xbb\xbf[1]",
    b"[NaN, Infinity]",
    b"[" * 1100 + b"]" * 1100,
    b'{"a": 1, "a": 2,}',
)


def shortened(tar):
    """With as many blocks of zeros at its end as an end has; Python writes twenty."""
    n = len(tar.rstrip(b"\0"))
    return tar[: (n + 511) // 512 * 512] + bytes(1024)


def tar_files():
    long_name = "f" * 90 + "/" + "n" * 90 + ".jpg"
    for layout in (tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w", format=layout) as tar:
            names = ["a.jpg", "a.cls", "dir/b.seg.png", long_name]
            for name in names + (["\u00fcber.txt"] if layout != tarfile.USTAR_FORMAT else []):
                info = tarfile.TarInfo(name)
                info.size = len(name)
                tar.addfile(info, io.BytesIO(name.encode()[: info.size]))
            for kind in (tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE):
                info = tarfile.TarInfo("other")
                info.type, info.linkname = kind, "a.jpg"
                tar.addfile(info)
        yield shortened(out.getvalue())
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        info = tarfile.TarInfo("p.txt")
        info.pax_headers = {"path": "other/p.txt", "comment": "none", "mtime": "1.5"}
        tar.addfile(info)
    yield shortened(out.getvalue())


def picture(mode, width=9, height=7):
    rng = random.Random(f"{mode} {width}")
    n = width * height * len(Image.new(mode, (1, 1)).getbands()) * (2 if mode == "I;16" else 1)
    if mode == "1":
        return Image.frombytes("L", (width, height), rng.randbytes(n)).convert("1")
    return Image.frombytes(mode, (width, height), rng.randbytes(n))


def saved(image, layout, **options):
    out = io.BytesIO()
    image.save(out, layout, **options)
    return out.getvalue()


def jpeg_files():
    for mode in ("L", "RGB", "CMYK"):
        for progressive in (False, True):
            yield saved(picture(mode), "JPEG", progressive=progressive, quality=60)
    smooth = Image.linear_gradient("L").resize((40, 24)).convert("RGB")
    for subsampling in (0, 1, 2):
        yield saved(smooth, "JPEG", subsampling=subsampling, optimize=True)
    exif = Image.Exif()
    exif[0x0112] = 6  # turned
    yield saved(smooth, "JPEG", exif=exif, icc_profile=b"icc" * 20, dpi=(72, 72))
    yield saved(smooth, "JPEG", restart_marker_rows=1)


def png_chunk(name, data):
    sum_ = zlib.crc32(name + data)
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", sum_)


def raw_png(colour, bits, interlaced, extra=b"", width=9, height=7):
    """PIL writes neither every depth nor interlaced ones."""
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    passes = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2))
    passes = (*passes, (0, 1, 1, 2)) if interlaced else ((0, 0, 1, 1),)
    rng = random.Random(f"{colour} {bits}")
    rows = b""
    for x, y, dx, dy in passes:
        columns, lines = -(-(width - x) // dx), -(-(height - y) // dy)
        for line in range(lines if columns > 0 else 0):
            n = (columns * channels * bits + 7) // 8
            rows += bytes([line % 5]) + (bytes(n) if colour == 3 else rng.randbytes(n))
    header = struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, interlaced)
    palette = png_chunk(b"PLTE", bytes(range(6))) if colour == 3 else b""
    return (
        b"\x89PNG\r\n\x1a\n"
        + png_chunk(b"IHDR", header)
        + palette
        + extra
        + png_chunk(b"IDAT", zlib.compress(rows))
        + png_chunk(b"IEND", b"")
    )


def png_files():
    depths = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
    clear = {0: b"\0\1", 2: b"\0\1\0\2\0\3", 3: b"\0\x80"}
    for colour, all_bits in depths.items():
        for bits in all_bits:
            for interlaced in (0, 1):
                yield raw_png(colour, bits, interlaced)
            if colour in clear:
                yield raw_png(colour, bits, 0, png_chunk(b"tRNS", clear[colour]))
    yield raw_png(2, 8, 0, png_chunk(b"gAMA", b"\0\0\xb1\x8f") + png_chunk(b"tEXt", b"k\0v"))
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"):
        yield saved(picture(mode), "PNG", optimize=True)


def bmp_files():
    for mode in ("1", "L", "P", "RGB", "RGBA"):
        yield saved(picture(mode), "BMP")


def zip_files():
    for packing in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        out = io.BytesIO()
        with zipfile.ZipFile(out, "w", packing) as archive:
            for name in ("a.npy", "folder/b.npy", "\u00fc.txt"):
                info = zipfile.ZipInfo(name)
                info.compress_type = packing
                with archive.open(info, "w", force_zip64=name == "a.npy") as to:
                    to.write(next(npy_files()))
            archive.comment = b"a comment"
        yield out.getvalue()
    # one whose end is that of a large file
    data = out.getvalue()
    end = data.rindex(b"PK\5\6")
    n, size, at = struct.unpack_from("<HII", data, end + 10)
    end64 = struct.pack("<4sQHHIIQQQQ", b"PK\6\6", 44, 45, 45, 0, 0, n, n, size, at)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, end, 1)
    end32 = struct.pack("<4sHHHHIIH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, 2**32 - 1, 2**32 - 1, 0)
    yield data[:end] + end64 + locator + end32


def elf_files():
    """Of this machine: what has every section that is read is too long to be made by hand."""
    for pattern in ("libdl.so.2", "libutil.so.1", "libanl.so.1", "Scrt1.o"):
        for path in sorted(pathlib.Path("/usr/lib").glob(f"*-linux-gnu/{pattern}")):
            if path.stat().st_size <= FILE_BYTES_MAX:
                yield path.read_bytes()


def installed_texts():
    """Of packages that are installed here: METADATA and its like."""
    for name in ("numpy", "pandas", "ipykernel", "scipy", "torch", "setuptools"):
        try:
            package = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        for file in ("METADATA", "PKG-INFO", "WHEEL"):
            yield (package.read_text(file) or "").split("\n\n")[0].encode()


REQUIREMENTS = (
    b'numpy>=1.21,<2.0; python_version < "3.12"',
    b"nvidia-cudnn-cu12==9.1.0.70 ; platform_system == 'Linux' and platform_machine == 'x86_64'",
    b"typing-extensions (>=4.8.0,!=4.9.*)",
    b"jax[cuda12]~=0.4.30; extra == 'gpu' or python_version in '3.10 3.11'",
    b"wheel @ https://example.org/wheel.whl",
)
VERSIONS = (b"2.4rc1.post2.dev3", b"1.13.0a0+git1", b"9.1.0.70", b"1!2.0", b"v3.0.0b2", b"2.21.*")


def package_files():
    texts = [*installed_texts(), b"".join(b"Requires-Dist: %s\n" % one for one in REQUIREMENTS)]
    yield from (b"\0" + one for one in texts)
    yield from (b"\1" + one for one in REQUIREMENTS)
    yield from (b"\2" + one.partition(b";")[2].strip() for one in REQUIREMENTS)
    yield from (b"\3numpy-%s.dist-info" % one for one in VERSIONS)
    yield b"\4__version__ = '2.1.0+cu126'\ncuda: Optional[str] = '12.6'\nhip: Optional[str] = None\n"
    yield b"\4build_info = collections.OrderedDict([('cuda_version', '12.5.1'), ('cuda_compute_capabi"
    yield from (b"\5%s\n%s" % (a, b) for a in VERSIONS for b in VERSIONS)
    yield b"\0052.21.3\n>=2.4 <3, !=2.21.*, ~=2.20"


def venv_files():
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=False, symlinks=True)
        text = (pathlib.Path(folder) / "pyvenv.cfg").read_bytes()
    yield b"\0" + text.replace(folder.encode(), b"/tmp/venv")
    yield b"\0home = /opt/python/bin\nversion_info = 3.13.0.final.0\nuv = 0.5\n"
    yield b"\1/home/ada/project\nimport os; os.environ\n\n# none\n./lib\n"
    yield b"\x023.11.2\n3.10\n"


def rules_files():
    lines = (pathlib.Path(__file__).parents[2] / "data" / "doctor.csv").read_bytes().splitlines(True)
    rows = [line for line in lines if not line.startswith(b"#")][1:]
    yield b"\0" + b"".join(lines)[:FILE_BYTES_MAX]
    yield from (b"\1" + b"".join(rows[at : at + 3]) for at in range(0, len(rows), 12))


def kernelspec_files():
    """Those that are installed here, and as a twin of ours has them."""
    for path in sorted(pathlib.Path("/usr/share/jupyter/kernels").glob("*/kernel.json")):
        spec = json.loads(path.read_bytes())
        yield path.read_bytes()
        run = ["/usr/bin/plimsoll", "run", "--budget", "4G", "--"]
        mark = {"plimsoll": {"twin_of": path.parent.name, "original": str(path.parent)}}
        twin = spec | {"argv": run + spec["argv"], "metadata": mark, "env": {"PATH": "/usr/bin"}}
        yield json.dumps(twin, indent=1).encode()


def seeds():
    """(target, input)"""
    every = {
        "npy": [b"\0" + one for one in npy_files()],
        "tfrecord": [bytes([first]) + one for one in RECORDS for first in (0, 1, 2, 4, 6)],
        "example": EXAMPLES,
        "inflate": [bytes((kind, *n)) + x for kind, x in packed_files() for n in ((0, 9), (7, 3))],
        "csv": [bytes([7, how]) + one for one in CSV_FILES for how in (0xC1, 0xD1, 0xF3, 0xC4)],
        "lines": [b"\5" + one for one in TEXTS],
        "json": [bytes([first]) + one for one in JSON_FILES for first in (0, 1, 6, 7)],
        "tar": [bytes([first]) + one for one in tar_files() for first in (0, 1)],
        "jpeg": [bytes([first]) + one for one in jpeg_files() for first in (0, 1, 2)],
        "png": [bytes([first]) + one for one in png_files() for first in (0, 8)],
        "bmp": [bytes([first]) + one for one in bmp_files() for first in (0, 3, 4)],
        "zip": list(zip_files()),
        "elf": list(elf_files()),
        "package": list(package_files()),
        "venv": list(venv_files()),
        "rules": list(rules_files()),
        "kernelspec": list(kernelspec_files()),
    }
    for target, inputs in every.items():
        for one in inputs:
            yield target, one
    files = [*npy_files(), *RECORDS, *CSV_FILES, *TEXTS, *JSON_FILES, *tar_files(), *jpeg_files()]
    files += [*png_files(), *bmp_files(), *zip_files(), *(x for kind, x in packed_files() if not kind)]
    streams = (*RECORDS, *CSV_FILES, *JSON_FILES, *tar_files())
    files += [gzip.compress(one, mtime=0) for one in streams]
    for one in files:
        yield "check", b"\0" + one


def broken(data, rng):
    """One that is cut off, and one that has another byte somewhere."""
    if len(data) > 8:
        yield data[: rng.randrange(4, len(data))]
        at = rng.randrange(1, len(data))
        yield data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]


def main():
    tests, folder = map(pathlib.Path, sys.argv[1:])
    rng = random.Random(1)
    shutil.rmtree(folder, ignore_errors=True)
    for source in pathlib.Path(__file__).parent.glob("fuzz_*.c"):
        name = source.stem.removeprefix("fuzz_")
        (folder / name).mkdir(parents=True)
        if name != "elf":  # which takes no input as a whole
            command = (tests / f"fuzz_{name}", str(N_MADE), folder / name)
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    for number, (target, data) in enumerate(seeds()):
        for kind, one in enumerate((data, *broken(data, rng))):
            (folder / target / f"seed-{number}-{kind}").write_bytes(one)
    for target, words in DICTIONARIES.items():
        (folder / f"{target}.dict").write_text("".join(f'"{word}"\n' for word in words))


if __name__ == "__main__":
    main()
