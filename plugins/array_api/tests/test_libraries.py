"""Libraries that are written against the standard take tensors and return them, with NumPy's numbers.

SciPy looks at SCIPY_ARRAY_API when it is imported, so these calls run in a process of their own.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest

HEAD = """
import numpy as np, oprack
from oprack import array_api as xp
a = np.random.default_rng(3).normal(size=(20, 3))
x = xp.asarray(a)
def same(found, wanted):
    assert type(found) is oprack.Tensor, type(found)
    np.testing.assert_allclose(found.numpy(), wanted, 1e-6, 1e-8)
"""
SCIPY = """
from scipy import fft, integrate, signal, special, stats
for function in (
    lambda x: special.logsumexp(x, axis=0), lambda x: special.softmax(x, axis=1), special.erf, stats.zscore, stats.skew,
    lambda x: stats.pearsonr(x[:, 0], x[:, 1]).statistic, lambda x: stats.ttest_ind(x, x + 1.0).pvalue,
    lambda x: fft.rfft(x, axis=0), lambda x: fft.dct(x, axis=0), lambda x: signal.hilbert(x, axis=0),
    lambda x: signal.fftconvolve(x, x), lambda x: integrate.trapezoid(x, axis=0),
):
    same(function(x), function(a))
"""
SKLEARN = """
import sklearn
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge
from sklearn.mixture import GaussianMixture
from sklearn.preprocessing import StandardScaler
def results(x, labels, target):
    return (
        StandardScaler().fit_transform(x), PCA(2, svd_solver="full").fit_transform(x),
        Ridge(solver="svd").fit(x, target).predict(x),
        LinearDiscriminantAnalysis().fit(x, labels).predict(x),
        GaussianMixture(2, init_params="random", random_state=0, reg_covar=0.0).fit(x).means_,
    )
labels = (a[:, 0] > 0).astype("int64")
wanted = results(a, labels, a[:, 1])
sklearn.set_config(array_api_dispatch=True)
for one, other in zip(results(x, xp.asarray(labels), x[:, 1]), wanted):
    same(one, other)
"""
EINOPS = """
from einops.array_api import rearrange, reduce, repeat
same(rearrange(x, "(a b) c -> a c b", a=4), a.reshape(4, 5, 3).transpose(0, 2, 1))
same(reduce(x, "(a b) c -> a c", "mean", a=4), a.reshape(4, 5, 3).mean(axis=1))
same(repeat(x, "a c -> a c d", d=2), np.stack([a, a], axis=2))
"""


@pytest.mark.parametrize(("library", "code"), [("scipy", SCIPY), ("sklearn", SKLEARN), ("einops", EINOPS)])
def test_a_library_takes_tensors(library: str, code: str) -> None:
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    environment = os.environ | {"SCIPY_ARRAY_API": "1"}
    ran = subprocess.run(
        [sys.executable, "-c", HEAD + code], env=environment, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
