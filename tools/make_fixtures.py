#!/usr/bin/env python3
"""Writes the small good and broken pictures of tests/data/pictures, and their manifest.csv. Needs Pillow.

All come from one made picture of 97 by 65 pixels. The kinds in the manifest: same (the very pixels of the made picture), close (the same picture,
lossy or with fewer colours), good (another picture that decodes), bad (must be refused). Usage: make_fixtures.py [FOLDER].
"""
import csv
import io
import pathlib
import random
import struct
import sys
import zlib

from PIL import Image, ImageDraw

FOLDER = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent / "tests/data/pictures")
WIDTH, HEIGHT = 97, 65


def picture():
    made = Image.new("RGB", (WIDTH, HEIGHT))
    made.putdata([((x * 5) % 256, (y * 3) % 256, (x * y) // 40 % 256) for y in range(HEIGHT) for x in range(WIDTH)])
    draw = ImageDraw.Draw(made)
    draw.ellipse((20, 10, 70, 55), fill=(200, 40, 60))
    draw.rectangle((40, 25, 90, 40), fill=(20, 180, 90))
    return made


def saved(image, form, **options):
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def png_chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_that_declares(width, height):
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header) + png_chunk(b"IDAT", zlib.compress(b"\0" * 100)) + png_chunk(b"IEND", b"")


def replaced(data, at, value):
    return data[:at] + value + data[at + len(value):]


def exif(orientation):
    tags = Image.Exif()
    tags[0x0112] = orientation
    return tags.tobytes()


def turned(image, orientation):
    """The stored picture that an upright one becomes under this orientation."""
    turn = {2: Image.Transpose.FLIP_LEFT_RIGHT, 3: Image.Transpose.ROTATE_180, 4: Image.Transpose.FLIP_TOP_BOTTOM, 5: Image.Transpose.TRANSPOSE,
            6: Image.Transpose.ROTATE_90, 7: Image.Transpose.TRANSVERSE, 8: Image.Transpose.ROTATE_270}.get(orientation)
    return image.transpose(turn) if turn is not None else image


def files():
    made = picture()
    jpeg = saved(made, "JPEG", quality=90)
    png = saved(made, "PNG")
    frame = jpeg.index(b"\xff\xc0")  # SOF0: length, precision, height, width
    huffman = jpeg.index(b"\xff\xc4")
    scan = jpeg.index(b"\xff\xda")
    noise = random.Random(1).randbytes(2000)
    yield "png.png", "same", png
    yield "png_alpha.png", "same", saved(made.convert("RGBA"), "PNG")
    yield "bmp.bmp", "same", saved(made, "BMP")
    yield "tiff.tif", "same", saved(made, "TIFF")
    yield "tiff_deflate.tif", "same", saved(made, "TIFF", compression="tiff_deflate")
    yield "webp_lossless.webp", "same", saved(made, "WEBP", lossless=True)
    yield "png_palette.png", "close", saved(made.quantize(256), "PNG")
    yield "gif.gif", "close", saved(made.quantize(256), "GIF")
    yield "webp.webp", "close", saved(made, "WEBP", quality=90)
    yield "jpeg.jpg", "close", jpeg
    yield "jpeg_444.jpg", "close", saved(made, "JPEG", quality=90, subsampling=0)
    yield "jpeg_422.jpg", "close", saved(made, "JPEG", quality=90, subsampling=1)
    yield "jpeg_progressive.jpg", "close", saved(made, "JPEG", quality=90, progressive=True)
    yield "jpeg_optimized.jpg", "close", saved(made, "JPEG", quality=90, optimize=True)
    yield "UPPER.JPEG", "close", jpeg
    yield "jpeg_named.png", "close", jpeg  # the content decides, not the name
    for orientation in range(2, 9):
        yield f"jpeg_turned_{orientation}.jpg", "close", saved(turned(made, orientation), "JPEG", quality=90, exif=exif(orientation))
    yield "jpeg_grey.jpg", "good", saved(made.convert("L"), "JPEG", quality=90)
    yield "jpeg_cmyk.jpg", "good", saved(made.convert("CMYK"), "JPEG", quality=90)
    yield "png_grey.png", "good", saved(made.convert("L"), "PNG")
    yield "png_1bit.png", "good", saved(made.convert("1"), "PNG")
    yield "png_16bit.png", "good", saved(made.convert("L").convert("I;16"), "PNG")
    yield "png_1x1.png", "good", saved(made.crop((0, 0, 1, 1)), "PNG")
    yield "empty.jpg", "bad", b""
    yield "one_byte.jpg", "bad", b"\xff"
    yield "text.jpg", "bad", b"This is not a picture.\n" * 20
    yield "html.jpg", "bad", b"<html><body>404 Not Found</body></html>"
    yield "noise.jpg", "bad", noise
    yield "noise_after_start.jpg", "bad", b"\xff\xd8\xff" + noise
    yield "jpeg_start_only.jpg", "bad", jpeg[:2]
    yield "jpeg_cut_in_header.jpg", "bad", jpeg[:frame + 6]
    yield "jpeg_cut_before_scan.jpg", "bad", jpeg[:scan]
    yield "jpeg_cut_half.jpg", "bad", jpeg[:scan + (len(jpeg) - scan) // 2]
    yield "jpeg_zero_height.jpg", "bad", replaced(jpeg, frame + 5, b"\0\0")
    yield "jpeg_zero_width.jpg", "bad", replaced(jpeg, frame + 7, b"\0\0")
    yield "jpeg_12_bits.jpg", "bad", replaced(jpeg, frame + 4, b"\x0c")
    yield "jpeg_lossless.jpg", "bad", replaced(jpeg, frame, b"\xff\xc3")
    yield "jpeg_huge.jpg", "bad", replaced(jpeg, frame + 5, struct.pack(">HH", 65500, 65500))
    yield "jpeg_huffman_garbage.jpg", "bad", replaced(jpeg, huffman + 5, b"\xff" * 16)
    yield "jpeg_no_tables.jpg", "bad", jpeg[:2] + jpeg[frame:]
    yield "png_cut.png", "bad", png[:len(png) // 2]
    yield "png_header_checksum.png", "bad", replaced(png, 29, b"\0\0\0\0")
    yield "png_data_garbage.png", "bad", replaced(png, 60, noise[:40])
    yield "png_huge.png", "bad", png_that_declares(2_000_000_000, 2_000_000_000)
    yield "png_no_rows.png", "bad", png_that_declares(64, 64)
    yield "bmp_cut.bmp", "bad", saved(made, "BMP")[:400]
    yield "gif_cut.gif", "bad", saved(made.quantize(256), "GIF")[:300]
    yield "tiff_cut.tif", "bad", saved(made, "TIFF")[:100]
    yield "webp_cut.webp", "bad", saved(made, "WEBP", quality=90)[:60]


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in FOLDER.iterdir():
        old.unlink()
    rows = []
    for name, kind, data in files():
        (FOLDER / name).write_bytes(data)
        rows.append({"file": name, "kind": kind, "bytes": len(data)})
    with open(FOLDER / "manifest.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, ["file", "kind", "bytes"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


main()
