"""Nets as predictors, beside the reference path."""

from __future__ import annotations

import numpy as np
import oprack
from oprack import inference
from oprack.io import save_inference_model

CLOSE = dict(rtol=2e-5, atol=2e-5)


def normal(*shape, seed=0):
    return np.random.default_rng((seed, *shape)).standard_normal(shape, dtype=np.float32)


def images(x):
    """A net with a branch, residuals, squeeze and excitation, and maximum pooling."""
    layers = oprack.layers
    x = layers.conv2d(x, 16, 3, padding=1, act="relu")
    y = layers.conv2d(x, 16, 3, padding=1, groups=16, act="hard_swish")
    s = layers.conv2d(layers.pool2d(y, pool_type="avg", global_pooling=True), 4, 1, act="relu")
    y = layers.elementwise_mul(y, layers.conv2d(s, 16, 1, act="sigmoid"))
    x = layers.elementwise_add(layers.conv2d(y, 16, 1), x)
    x = layers.pool2d(x, 2, "max", 2)
    return layers.conv2d(x, 8, 3, padding=1, act="relu")


def branches(x):
    """A net whose branches are concatenated, and a map of half its size that is spread over the whole."""
    layers = oprack.layers
    x = layers.conv2d(x, 8, 3, padding=1, act="relu")
    low = layers.conv2d(layers.pool2d(x, 2, "avg", 2), 12, 3, padding=1, act="relu")
    up = layers.resize_nearest(low, scale=2.0, align_corners=False)
    parts = [layers.conv2d(x, 8, 1, act="relu"), up, layers.conv2d(x, 4, 3, padding=1)]
    return layers.conv2d(layers.concat(parts, axis=1), 8, 3, padding=1)


def rows(x):
    """Products with what follows them, layer_norm and softmax, for rows of any number."""
    layers = oprack.layers
    y = layers.fc(x, 256, act="gelu")
    y = layers.layer_norm(layers.elementwise_add(layers.fc(y, 128), x), begin_norm_axis=1)
    return layers.softmax(layers.fc(layers.fc(y, 256, act="relu"), 64))


class Served:
    """A net as a predictor, of so many threads if that is said, and on the reference path."""

    def __init__(self, net, shape, folder, lod_level=0, threads=0):
        main, startup = oprack.Program(), oprack.Program()
        with oprack.program_guard(main, startup):
            y = net(oprack.layers.data("x", [None, *shape], lod_level=lod_level))
        scope, executor = oprack.Scope(), oprack.Executor(seed=3)
        executor.run(startup, scope=scope)
        save_inference_model(str(folder / "net"), main, ["x"], [y.name], scope)
        self.program, self.scope, self.fetched = main, scope, y.name
        config = inference.Config(str(folder / "net.pdmodel"), str(folder / "net.pdiparams"))
        if threads:
            config.set_cpu_math_library_num_threads(threads)
        self.predictor = inference.create_predictor(config)
        self.plain = oprack.Executor(prepared=False, excluded_libraries=["onednn"])

    def __call__(self, x, predictor=None):
        return (predictor or self.predictor).run([x])[0]

    def reference(self, x):
        return self.plain.run(self.program, {"x": x}, [self.fetched], self.scope)[0]

    def check(self, x, predictor=None):
        y = self(x, predictor)
        np.testing.assert_allclose(y, self.reference(x), **CLOSE)
        return y

    def source(self):
        return self.predictor._prepared.block(0).plan(tuple(self.predictor.get_output_names())).source()
