"""What stands between the three models of PP-OCR: pictures are decoded and cut into lines, and lines become text.

Sizes, thresholds and batches are those of rapidocr-paddle, so that answers are equal to its own. A function returns a
list where a model is to run once for each entry: lines of like shape go to the models six at a time, and the server
joins them with those of other requests.
"""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pyclipper
from oprack.errors import MemoryLimitError
from oprack_serve.pipelines import decode_picture

cv2.setNumThreads(1)  # the server decides how many workers there are

MAX_PIXELS = 16_000_000
LONGEST, SHORTEST, TALLEST_RATIO = 2000, 30, 8  # of a page's sides; width by height
DETECTED_SIDE, MAX_DETECTED_PIXELS = 736, 8_000_000
IN_TEXT, IN_BOX, GROWN = 0.3, 0.5, 1.6  # of the map of probabilities
MAX_LINES = 1000
TOGETHER = 6
LINE_HEIGHT, DIRECTION_WIDTH, TEXT_WIDTH = 48, 192, 320
UPSIDE_DOWN, READABLE = 0.9, 0.5

CHARACTERS = ["", *Path(__file__).with_name("characters.txt").read_text("utf-8").rstrip("\n").split("\n"), " "]


# Pictures to pages ----------------------------------------------------------------------------------------------------
def read(picture):
    """File -> page [H, W, 3] of blue, green and red, its geometry, and the input of detection."""
    decoded = decode_picture(picture[0], MAX_PIXELS)
    if "A" in decoded.getbands() or "transparency" in decoded.info:  # text is dark on white more often than not
        from PIL import Image

        decoded = decoded.convert("RGBA")
        decoded = Image.alpha_composite(Image.new("RGBA", decoded.size, "white"), decoded)
    page = np.ascontiguousarray(np.asarray(decoded.convert("RGB"))[:, :, ::-1])
    height, width = page.shape[:2]
    if max(height, width) > LONGEST:
        page = scaled(page, LONGEST / max(height, width))
    if min(page.shape[:2]) < SHORTEST:
        page = scaled(page, SHORTEST / min(page.shape[:2]))
    ratios = width / page.shape[1], height / page.shape[0]
    above = border(*page.shape[:2])
    page = cv2.copyMakeBorder(page, above, above, 0, 0, cv2.BORDER_CONSTANT, value=(0, 0, 0))
    geometry = np.array([width, height, *ratios, above], np.float64)
    shortest = min(page.shape[:2])
    image = scaled(page, max(1.0, DETECTED_SIDE / shortest))
    return page, geometry, normal(image)[None]


def scaled(image, ratio):
    """The image by a ratio, with sides that are multiples of 32, as detection needs them."""
    height, width = (round(int(side * ratio) / 32) * 32 for side in image.shape[:2])
    if height * width > MAX_DETECTED_PIXELS:
        raise MemoryLimitError(
            f"a picture of {image.shape[1]} x {image.shape[0]} pixels is too long and narrow: scaled for detection it "
            f"has {width} x {height}; at most {MAX_DETECTED_PIXELS} are taken"
        )
    return cv2.resize(image, (max(32, width), max(32, height)))


def border(height, width):
    """Rows to add above and below a page that is low or very wide: detection wants some space around a line."""
    if height > SHORTEST and width / height <= TALLEST_RATIO:
        return 0
    return int(abs(max(int(width / TALLEST_RATIO), SHORTEST) * 2 - height) / 2)


def normal(image):
    """[H, W, 3] of 0 to 255 -> float32 [3, H, W] of -1 to 1."""
    return np.ascontiguousarray((image.astype(np.float32) / 255 - 0.5).transpose(2, 0, 1) / 0.5, np.float32)


# Pages to lines -------------------------------------------------------------------------------------------------------
def cut(page, map):
    """Page and map of probabilities -> boxes [N, 4, 2], pictures of the lines, and these as inputs of direction."""
    boxes = in_reading_order(find_boxes(map[0, 0], *page.shape[:2]))
    lines = [straightened(page, box) for box in boxes]
    inputs = np.array([fitted(lines[i], DIRECTION_WIDTH) for i in by_shape(lines)], np.float32)
    together = [inputs[i : i + TOGETHER] for i in range(0, len(inputs), TOGETHER)]
    return np.array(boxes, np.float32).reshape(-1, 4, 2), lines, together


def find_boxes(probabilities, height, width):
    """Corners of the regions in which text is likely, on a page of that size."""
    text = cv2.dilate((probabilities > IN_TEXT).astype(np.uint8), np.ones((2, 2), np.uint8))
    contours, _ = cv2.findContours(text * 255, cv2.RETR_LIST, cv2.CHAIN_APPROX_SIMPLE)
    of_map, of_page = (np.array(size, np.float32) for size in (text.shape[::-1], (width, height)))
    found = []
    for contour in contours[:MAX_LINES]:
        corners, side = rectangle(contour)
        if side < 3 or mean_inside(probabilities, corners) < IN_BOX:
            continue
        corners, side = rectangle(grown(corners))
        if side < 5:
            continue
        corners = clockwise(np.clip(np.round(corners / of_map * of_page), 0, of_page).astype(np.int32))
        corners = np.clip(corners, 0, (width - 1, height - 1)).astype(np.float32)
        if min(int(np.linalg.norm(corners[0] - corners[k])) for k in (1, 3)) > 3:
            found.append(corners)
    return found


def rectangle(points):
    """The smallest rectangle around points: its corners, clockwise from the top left, and its shorter side."""
    found = cv2.minAreaRect(points)
    return clockwise(cv2.boxPoints(found)), min(found[1])


def clockwise(corners):
    """Four corners, the top left first."""
    by_x = corners[np.argsort(corners[:, 0], kind="stable")]
    left, right = (pair[np.argsort(pair[:, 1], kind="stable")] for pair in (by_x[:2], by_x[2:]))
    return np.array([left[0], right[0], right[1], left[1]], np.float32)


def mean_inside(probabilities, corners):
    """The mean probability inside of a box."""
    bottom, right = (size - 1 for size in probabilities.shape)
    first = np.clip(np.floor(corners.min(0)), 0, (right, bottom)).astype(int)
    last = np.clip(np.ceil(corners.max(0)), 0, (right, bottom)).astype(int)
    mask = np.zeros((last - first + 1)[::-1], np.uint8)
    cv2.fillPoly(mask, (corners - first).astype(np.int32)[None], 1)
    return cv2.mean(probabilities[first[1] : last[1] + 1, first[0] : last[0] + 1], mask)[0]


def grown(corners):
    """A polygon around a box at some distance: detection finds the core of a line."""
    x, y = corners.astype(np.float64).T
    area = abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1))) / 2
    around = np.linalg.norm(np.stack([x - np.roll(x, 1), y - np.roll(y, 1)]), axis=0).sum()
    offset = pyclipper.PyclipperOffset()
    offset.AddPath(corners, pyclipper.JT_ROUND, pyclipper.ET_CLOSEDPOLYGON)
    return np.array(offset.Execute(area * GROWN / around)).reshape(-1, 1, 2)


def in_reading_order(boxes):
    """From top to bottom, and from left to right where tops differ by less than 10 pixels."""
    boxes = sorted(boxes, key=lambda box: (box[0][1], box[0][0]))
    for end in range(1, len(boxes)):
        for i in range(end, 0, -1):
            before, after = boxes[i - 1][0], boxes[i][0]
            if abs(after[1] - before[1]) >= 10 or after[0] >= before[0]:
                break
            boxes[i - 1], boxes[i] = boxes[i], boxes[i - 1]
    return boxes


def straightened(page, box):
    """The picture of a line; one that stands upright is laid down."""
    width, height = (
        int(max(np.linalg.norm(box[a] - box[b]), np.linalg.norm(box[c] - box[d])))
        for a, b, c, d in ((0, 1, 2, 3), (0, 3, 1, 2))
    )
    target = np.array([[0, 0], [width, 0], [width, height], [0, height]], np.float32)
    matrix = cv2.getPerspectiveTransform(box, target)
    line = cv2.warpPerspective(page, matrix, (width, height), borderMode=cv2.BORDER_REPLICATE, flags=cv2.INTER_CUBIC)
    return np.rot90(line) if height / width >= 1.5 else line


def by_shape(lines):
    """Numbers of the lines, the shortest first: those that go to a model together are padded to one width."""
    return np.argsort([line.shape[1] / line.shape[0] for line in lines])


def fitted(line, width):
    """A line as an input of a model: LINE_HEIGHT high, and at most that wide, with zeros behind it."""
    own = min(width, int(np.ceil(LINE_HEIGHT * (line.shape[1] / line.shape[0]))))
    padded = np.zeros((3, LINE_HEIGHT, width), np.float32)
    padded[:, :, :own] = normal(cv2.resize(line, (own, LINE_HEIGHT)))
    return padded


# Lines to text --------------------------------------------------------------------------------------------------------
def turn(lines, directions):
    """Lines and probabilities of their directions -> their order, and inputs of recognition in that order."""
    lines = list(lines)
    upside_down = np.concatenate([*directions, np.zeros((0, 2), np.float32)])[:, 1] > UPSIDE_DOWN
    for i, turned in zip(by_shape(lines), upside_down, strict=True):
        if turned:
            lines[i] = cv2.rotate(lines[i], cv2.ROTATE_180)
    order = by_shape(lines)
    inputs = []
    for start in range(0, len(order), TOGETHER):
        some = [lines[i] for i in order[start : start + TOGETHER]]
        ratio = max(TEXT_WIDTH / LINE_HEIGHT, *(line.shape[1] / line.shape[0] for line in some))
        inputs.append(np.stack([fitted(line, int(LINE_HEIGHT * ratio)) for line in some]))
    return np.asarray(order, np.int64), inputs


def spell(order, characters, boxes, geometry):
    """Probabilities [lines, steps, characters] -> text, scores and boxes of the lines that can be read."""
    read = [spelled(steps) for some in characters for steps in some]
    texts, scores = [""] * len(order), np.zeros(len(order), np.float32)
    for i, (text, score) in zip(order, read, strict=True):
        texts[i], scores[i] = text, score
    width, height, *ratios, above = geometry
    boxes = np.clip((boxes - [0, above]) * ratios, 0, (width, height)).astype(np.float32)
    good = scores >= READABLE
    return np.array(texts, object)[good], scores[good], boxes[good]


def spelled(steps):
    """The text of a line and its score: the best character of each step, without blanks and repetitions (CTC)."""
    best, probability = steps.argmax(1), steps.max(1)
    kept = (best != 0) & np.append(True, best[1:] != best[:-1])
    return "".join(CHARACTERS[i] for i in best[kept]), float(probability[kept].mean()) if kept.any() else 0.0
