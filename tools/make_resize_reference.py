#!/usr/bin/env python3
"""Writes src/image/testing/resize_reference.inc: what Pillow's BILINEAR makes of noise, for resize_test.cc to compare with.

Run by hand where Pillow is installed (the file was made with 9.4): tools/make_resize_reference.py > src/image/testing/resize_reference.inc
"""
from PIL import Image

CASES = [(37, 23, 16, 10), (23, 37, 64, 9), (5, 3, 12, 9), (300, 2, 7, 5), (2, 300, 3, 4), (64, 64, 1, 1), (1, 1, 6, 4), (40, 30, 40, 11)]


def noise(count):
    """Noise(count) of resize_test.cc."""
    state, values = 1, bytearray()
    for _ in range(count):
        state = (state * 1664525 + 1013904223) % 2**32
        values.append(state >> 24)
    return bytes(values)


print("// Written by tools/make_resize_reference.py with Pillow. Source width, height, target width, height, RGB in hex.")
for width, height, target_width, target_height in CASES:
    source = Image.frombytes("RGB", (width, height), noise(width * height * 3))
    pixels = source.resize((target_width, target_height), Image.BILINEAR).tobytes().hex()
    print(f"{{{width}, {height}, {target_width}, {target_height},")
    lines = [pixels[i : i + 100] for i in range(0, len(pixels), 100)]
    print("\n".join(f'    "{line}"' for line in lines) + "},")
