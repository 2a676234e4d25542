"""Ops of packs as ops of torch: values, gradients, memory, tracing, sequences and programs."""

from __future__ import annotations

import copy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import oprack
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed; `make bridges` runs this")
import oprack_torch  # noqa: E402
from oprack.errors import InvalidLoDError, NotDifferentiableError  # noqa: E402
from oprack_torch import Sequences, ops  # noqa: E402
from torch import nn  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")  # torch's own, of its releases
# inductor, torch.compile's own way, writes C++
BACKENDS = ["aot_eager", *["inductor"] * bool(shutil.which("g++"))]
X = torch.tensor([[-1.5, 0.5, 2.0], [3.0, -0.25, 1.0]])


def test_an_op_of_every_pack_is_there_on_first_use() -> None:
    assert torch.equal(torch.ops.oprack.relu(X), X.clamp(min=0))
    assert "relu" in dir(ops) and "alpha" in str(torch.ops.oprack.leaky_relu.default._schema)
    with pytest.raises(AttributeError, match="no installed pack brings it"):
        _ = torch.ops.oprack.relu_of_nobody
    with pytest.raises(AttributeError, match="can't be an op of another framework"):
        _ = ops.conditional_block


def test_arguments_are_those_of_oprack_functional() -> None:
    assert ops.matmul_v2.__signature__ == oprack.functional.matmul_v2.__signature__
    assert ops.cast(X, in_dtype="float32", out_dtype=torch.float64).dtype is torch.float64
    values, indices = ops.top_k_v2(X, k=2)
    assert torch.equal(values, X.topk(2).values) and torch.equal(indices, X.topk(2).indices)
    parts = ops.split(X, num=3, axis=1)
    assert [p.shape for p in parts] == [(2, 1)] * 3
    with pytest.raises(oprack.errors.InvalidArgumentError, match="no attribute 'slope'"):
        ops.leaky_relu(X, slope=0.1)


@pytest.mark.parametrize("call", [torch.ops.oprack.batch_norm, ops.batch_norm])
def test_inputs_go_to_their_slots_whatever_their_order(call) -> None:
    mean, variance, scale, bias = (torch.tensor([float(i), i + 1.0, i + 2.0]) for i in range(1, 5))
    want = nn.functional.batch_norm(X, mean, variance, scale, bias, training=False, eps=1e-5)
    for _ in range(3):  # the first call, those of generated code
        found = call(X, mean, variance, scale, bias, is_test=True, epsilon=1e-5)[0]
        torch.testing.assert_close(found, want)


def test_gradients_of_first_and_second_order() -> None:
    for call in (torch.ops.oprack.tanh, ops.tanh):
        x = X.double().requires_grad_()
        for _ in range(2):
            (first,) = torch.autograd.grad(call(x).sum(), x, create_graph=True)
            (second,) = torch.autograd.grad(first.sum(), x)
        t = torch.tanh(x.detach())
        torch.testing.assert_close(first.detach(), 1 - t**2)
        torch.testing.assert_close(second, -2 * t * (1 - t**2))


def test_nothing_is_copied_in_or_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel sees the memory of torch's tensor, and torch's result is what the kernel made."""
    from oprack_torch import draws

    x, seen = torch.arange(6.0), []

    def watched(expr, tensors):
        seen.extend(t._value.ctypes.data for t in tensors)
        results = run(expr, tensors)
        seen.extend(t._value.ctypes.data for t in results)
        return results

    run = draws.run
    monkeypatch.setattr(draws, "run", watched)
    y = torch.ops.oprack.square(x)
    y = torch.ops.oprack.square(x) if len(seen) != 2 else y
    assert seen[-2:] == [x.data_ptr(), y.data_ptr()]


def test_a_view_of_a_kernel_is_memory_of_its_own_in_torch() -> None:
    x = torch.arange(6.0)
    for call in (torch.ops.oprack.reshape2, ops.reshape2):
        for _ in range(3):
            y = call(x, shape=[2, 3])
            y = y[0] if isinstance(y, tuple) else y
            assert y.data_ptr() != x.data_ptr() and torch.equal(y.flatten(), x)


def test_the_form_in_place_writes_to_its_inputs() -> None:
    parameter, gradient = torch.ones(3), torch.tensor([1.0, 2.0, 3.0])
    address = parameter.data_ptr()
    found = ops.sgd_(parameter, grad=gradient, learning_rate=torch.tensor([0.5]))
    assert found is parameter and parameter.data_ptr() == address
    torch.testing.assert_close(parameter, torch.tensor([0.5, 0.0, -0.5]))
    with pytest.raises(NotDifferentiableError, match="writes to its inputs"):
        ops.relu_(X.clone().requires_grad_() * 1)


def test_random_ops_follow_torch_s_seed_and_leave_oprack_s_alone() -> None:
    oprack.seed(5)
    want = oprack.functional.dropout(oprack.to_tensor(np.ones(50, "float32")))[0].numpy()
    torch.manual_seed(1)
    a = torch.ops.oprack.dropout(torch.ones(50))[0]
    torch.manual_seed(1)
    b = torch.ops.oprack.dropout(torch.ones(50))[0]
    c = torch.ops.oprack.dropout(torch.ones(50))[0]
    assert torch.equal(a, b) and not torch.equal(b, c)
    oprack.seed(5)
    assert np.array_equal(oprack.functional.dropout(oprack.to_tensor(np.ones(50, "float32")))[0].numpy(), want)


@pytest.mark.parametrize("backend", BACKENDS)
def test_compile_with_backward_and_dynamic_sizes(backend: str) -> None:
    def function(x, w):
        return ops.softmax(ops.relu(ops.matmul_v2(x, w)), axis=-1).square().sum()

    compiled = torch.compile(function, fullgraph=True, backend=backend, dynamic=True)
    for rows in (2, 5):
        pairs = []
        for f in (function, compiled):
            torch.manual_seed(rows)
            x, w = torch.randn(rows, 3, requires_grad=True), torch.randn(3, 4, requires_grad=True)
            y = f(x, w)
            y.backward()
            pairs.append((y.detach(), x.grad, w.grad))
        for a, b in zip(*pairs, strict=True):
            torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-5)


def test_export_with_dynamic_sizes_to_a_file(tmp_path: Path) -> None:
    class Net(nn.Module):
        def forward(self, x):
            return torch.ops.oprack.concat([torch.ops.oprack.relu(x), x], axis=0)

    batch = torch.export.Dim("batch", min=2)
    exported = torch.export.export(Net(), (X,), dynamic_shapes=({0: batch},))
    assert torch.ops.oprack.relu.default in [node.target for node in exported.graph.nodes]
    more = torch.randn(7, 3)
    assert torch.equal(exported.module()(more), torch.cat([more.clamp(min=0), more]))
    torch.export.save(exported, tmp_path / "net.pt2")
    code = "import sys, torch, oprack_torch; print(torch.export.load(sys.argv[1]).module()(torch.tensor([[-1., 2.]])))"
    exported = torch.export.export(Net(), (X[:, :2],), dynamic_shapes=({0: batch},))
    torch.export.save(exported, tmp_path / "net.pt2")
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "net.pt2"], capture_output=True, text=True)
    assert done.stdout.split() == "tensor([[ 0., 2.], [-1., 2.]])".split(), done.stderr


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_form_in_place_in_a_graph(backend: str) -> None:
    @torch.compile(fullgraph=True, backend=backend)
    def step(parameter, gradient):
        ops.sgd_(parameter, grad=gradient, learning_rate=torch.tensor([0.5]))
        return parameter * 2

    parameter = torch.ones(3)
    address, version = parameter.data_ptr(), parameter._version
    torch.testing.assert_close(step(parameter, torch.tensor([1.0, 2.0, 3.0])), torch.tensor([1.0, 0.0, -1.0]))
    torch.testing.assert_close(parameter, torch.tensor([0.5, 0.0, -0.5]))
    assert parameter.data_ptr() == address and parameter._version > version


def test_autograd_sees_what_was_written_in_place() -> None:
    assert "Tensor(a!) param" in str(torch.ops.oprack.sgd_.default._schema)
    x = X[0].clone().requires_grad_()
    y = x.exp()  # whose gradient reads y
    torch.ops.oprack.sgd_(y.detach(), grad=X[1], learning_rate=torch.tensor([1.0]))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_calls_whose_results_are_as_many_as_a_size_says() -> None:
    for rows in (3, 3, 3, 4):
        assert len(ops.unstack(torch.ones(rows, 2))) == len(torch.ops.oprack.unstack(torch.ones(rows, 2))) == rows


def test_the_same_call_by_both_names_is_found_by_its_dtypes() -> None:
    from oprack_torch.library import torch_op

    for name, attrs in (("softmax", {"axis": -1}), ("softmax", {}), ("batch_norm", {"is_test": True})):
        arguments = [X.double(), *[torch.ones(3, dtype=torch.float64) for _ in range(4)]][: 5 if "norm" in name else 1]
        op = torch_op(name)
        op.forget()
        for call in (getattr(ops, name), getattr(torch.ops.oprack, name)):
            for _ in range(3):
                call(*arguments, **attrs)
        assert op.plain_calls and all(op.plain_calls.values())
        assert len({id(plain) for plain in op.plain_calls.values()}) == 1


def test_kernels_of_a_mode_are_those_that_run() -> None:
    """Under oprack.reference() no call goes to what was generated outside of it."""
    from oprack.runtime import Profiler

    for _ in range(3):
        ops.relu(X)
    with oprack.reference(), Profiler():
        assert torch.equal(ops.relu(X), X.clamp(min=0)) and torch.equal(torch.ops.oprack.relu(X), X.clamp(min=0))


def test_autocast_casts_as_oprack_s_own() -> None:
    a, b = torch.randn(2, 3), torch.randn(3, 4, requires_grad=True)
    for call in (ops, torch.ops.oprack):
        for _ in range(2):
            with torch.autocast("cpu", dtype=torch.bfloat16):
                product = call.matmul_v2(a, b)
                assert product.dtype is torch.bfloat16  # one that gains
                assert call.softmax(product).dtype is torch.float32  # one that needs range
                assert call.relu(product).dtype is torch.bfloat16  # any other
                assert call.elementwise_add(a, a.bfloat16()).dtype is torch.float32  # the widest
            assert call.matmul_v2(a, b).dtype is torch.float32
    b.grad = None
    product.float().sum().backward()
    torch.testing.assert_close(b.grad, a.sum(0)[:, None].expand(3, 4), rtol=1e-2, atol=1e-2)


def test_a_size_that_only_values_know_is_open_while_torch_traces() -> None:
    @torch.compile(fullgraph=True, backend="aot_eager")
    def function(x):
        return torch.ops.oprack.where_index(x)

    assert torch.equal(function(X > 0), torch.nonzero(X > 0))


def test_transforms_of_torch_func() -> None:
    want = 1 - torch.tanh(X) ** 2
    torch.testing.assert_close(torch.func.grad(lambda x: ops.tanh(x).sum())(X), want)
    torch.testing.assert_close(torch.vmap(ops.tanh)(X), torch.tanh(X))
    torch.testing.assert_close(torch.vmap(torch.func.grad(lambda x: ops.tanh(x).sum()))(X), want)
    batch = torch.stack([X, 2 * X, -X])
    for dim in (0, 1, 2):
        torch.testing.assert_close(torch.vmap(ops.tanh, in_dims=dim, out_dims=dim)(batch), torch.tanh(batch))
    added = torch.vmap(ops.elementwise_add, in_dims=(0, None))(batch, X)
    torch.testing.assert_close(added, batch + X)
    for axis in (0, 1):  # of an example
        found = torch.vmap(lambda x, axis=axis: ops.softmax(x, axis=axis))(batch)
        torch.testing.assert_close(found, batch.softmax(axis + 1))
    with pytest.raises(NotDifferentiableError, match="create_graph=True"):
        torch.func.hessian(lambda x: ops.tanh(x).sum())(X)
    with pytest.raises(NotImplementedError, match="jvp"):
        torch.func.jvp(ops.tanh, (X,), (X,))


def test_a_batch_is_one_call_where_any_dim_may_be_split(monkeypatch: pytest.MonkeyPatch) -> None:
    from oprack_torch import draws
    from oprack_torch.library import torch_op

    calls, run = [], draws.run
    monkeypatch.setattr(draws, "run", lambda expr, tensors: calls.append(expr.type) or run(expr, tensors))
    batch = torch.stack([X] * 5).to(torch.float64)
    for name, attrs, number in (("elu", {"alpha": 0.5}, 1), ("softmax", {"axis": 0}, 5)):
        torch_op(name).forget()
        calls.clear()
        monkeypatch.setattr(torch_op(name), "_keep_plain", lambda *_: None)
        torch.vmap(lambda x, name=name, attrs=attrs: getattr(torch.ops.oprack, name)(x, **attrs))(batch)
        assert calls == [name] * number


def test_sequences_to_and_from_nested_tensors_on_the_same_memory() -> None:
    nested = torch.nested.nested_tensor([torch.ones(2, 3), 2 * torch.ones(1, 3)], layout=torch.jagged)
    sequences = Sequences.from_nested(nested)
    assert sequences.values.data_ptr() == nested.values().data_ptr()
    assert sequences.to_nested().values().data_ptr() == nested.values().data_ptr()
    found = ops.sequence_pool(nested, pooltype="SUM")
    found = found[0] if isinstance(found, tuple) else found
    assert torch.equal(found, torch.tensor([[2.0] * 3, [2.0] * 3]))
    assert ops.relu(nested).is_nested and isinstance(ops.relu(sequences), Sequences)
    with pytest.raises(InvalidLoDError, match="not nested"):
        Sequences.from_nested(X)


def test_gradients_of_sequences() -> None:
    values = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    x = Sequences(values, (torch.tensor([0, 3, 3, 4]),))

    def function(v):
        return ops.sequence_softmax(Sequences(v, x.offsets)).values

    column = values[:, :1].detach().requires_grad_()
    assert torch.autograd.gradcheck(function, (column,))


def test_bfloat16_and_conjugated_views() -> None:
    assert torch.equal(ops.relu(X.bfloat16()), X.bfloat16().clamp(min=0))
    z = torch.view_as_complex(X.repeat(1, 2).reshape(-1, 2)).conj()
    for _ in range(2):
        torch.testing.assert_close(ops.real(z), z.real)
        torch.testing.assert_close(ops.imag(z), z.imag)


class _Block(nn.Module):
    def __init__(self, mine: bool, i: int, o: int, stride: int) -> None:
        super().__init__()
        self.mine, self.stride = mine, stride
        self.filters = nn.ParameterList([torch.randn(o, c, 3, 3) * (2 / (9 * c)) ** 0.5 for c in (i, o)])
        self.short = nn.Parameter(torch.randn(o, i, 1, 1) * (1 / i) ** 0.5)
        self.scales = nn.ParameterList([torch.ones(o) for _ in range(2)])
        self.shifts = nn.ParameterList([torch.zeros(o) for _ in range(2)])
        self.mean, self.variance = torch.zeros(o), torch.ones(o)

    def conv(self, x, w, stride):
        pad = w.shape[-1] // 2
        if self.mine:
            return ops.conv2d(x, w, strides=[stride, stride], paddings=[pad, pad])
        return nn.functional.conv2d(x, w, stride=stride, padding=pad)

    def norm(self, x, k):
        scale, shift = self.scales[k], self.shifts[k]
        if self.mine:
            return ops.batch_norm(x, self.mean, self.variance, scale, shift, epsilon=1e-5)[0]
        return nn.functional.batch_norm(x, None, None, scale, shift, training=True, eps=1e-5)

    def forward(self, x):
        relu = ops.relu if self.mine else torch.relu
        y = relu(self.norm(self.conv(x, self.filters[0], self.stride), 0))
        return relu(self.norm(self.conv(y, self.filters[1], 1), 1) + self.conv(x, self.short, self.stride))


class _ResNet18(nn.Module):
    """Eight blocks of two convolutions, as ResNet-18 has, of few channels."""

    def __init__(self, mine: bool) -> None:
        super().__init__()
        sizes = [(3, 4, 1), (4, 4, 1), (4, 8, 2), (8, 8, 1), (8, 16, 2), (16, 16, 1), (16, 32, 2), (32, 32, 1)]
        self.blocks = nn.Sequential(*[_Block(mine, *s) for s in sizes])
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        return self.head(self.blocks(x).mean((2, 3)))


def _losses(mine: bool, compiled: str = "") -> list[float]:
    torch.manual_seed(0)
    net = _ResNet18(mine).double()
    for block in net.blocks:
        block.mean, block.variance = block.mean.double(), block.variance.double()
    step = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9)
    call = torch.compile(net, fullgraph=True, backend=compiled) if compiled else net
    losses = []
    for _ in range(20):
        x, y = torch.randn(4, 3, 16, 16, dtype=torch.float64), torch.randint(0, 10, (4,))
        loss = nn.functional.cross_entropy(call(x), y)
        step.zero_grad()
        loss.backward()
        step.step()
        losses.append(loss.item())
    return losses


def test_a_resnet_of_oprack_s_ops_trains_as_torch_s_own_and_compiled() -> None:
    want = _losses(False)
    assert want[0] != want[-1]
    np.testing.assert_allclose(_losses(True), want, rtol=1e-5)
    np.testing.assert_allclose(_losses(True, BACKENDS[-1]), want, rtol=1e-5)


def _saved(folder: Path) -> str:
    """A net that was saved as Paddle does: a product, softmax behind it."""
    weight = oprack.to_tensor(np.float32([[1, -1], [2, 0.5], [-1, 1]]), requires_grad=True)
    net = oprack.to_program(
        lambda x: oprack.functional.softmax(oprack.functional.matmul_v2(x, weight)),
        [oprack.InputSpec([None, 3], name="x")],
    )
    oprack.io.save_inference_model(str(folder / "net"), net.program, net.feed_names, net.fetch_names, net.scope)
    return str(folder / "net.pdmodel")


def test_a_program_is_a_module_that_trains_compiles_and_exports(tmp_path: Path) -> None:
    module = oprack_torch.Module(_saved(tmp_path))
    weight = torch.tensor([[1, -1], [2, 0.5], [-1, 1]])
    torch.testing.assert_close(module(X), torch.softmax(X @ weight, -1))
    compiled = torch.compile(copy.deepcopy(module), backend="aot_eager")
    torch.testing.assert_close(compiled(X), module(X))
    exported = torch.export.export(module, (X,), dynamic_shapes=(({0: torch.export.Dim("batch", min=2)},),))
    torch.testing.assert_close(exported.module()(X.repeat(3, 1)), module(X.repeat(3, 1)))
    (parameter,) = module.parameters()
    torch.testing.assert_close(parameter.detach(), weight)
    step, target = torch.optim.SGD(module.parameters(), lr=0.1), torch.tensor([0, 1])
    own = weight.clone().requires_grad_()
    for _ in range(3):
        losses = [-y[range(2), target].log().mean() for y in (module(X), torch.softmax(X @ own, -1))]
        torch.testing.assert_close(losses[0], losses[1])
        step.zero_grad()
        sum(losses).backward()
        step.step()
        own = (own - 0.1 * own.grad).detach().requires_grad_()
    assert set(module.state_dict()) == {name for name, _ in module.named_parameters()}


LAC = Path(__file__).parents[3] / ".downloads" / "lac" / "lac_model" / "model"


@pytest.mark.skipif(not LAC.is_dir(), reason="examples/fetch_lac.py has not fetched LAC's models")
def test_lac_s_program_trains_in_a_loop_of_torch_on_sentences_of_several_lengths() -> None:
    whole = oprack_torch.Module(LAC)
    (crf,) = [op for op in whole._ops if op.type == "crf_decoding"]
    torch.manual_seed(0)
    words = Sequences.of([torch.randint(0, 1000, (n, 1)) for n in (5, 3, 9)])
    predictor = oprack.inference.create_predictor(oprack.inference.Config(str(LAC)))
    handle = predictor.get_input_handle(predictor.get_input_names()[0])
    handle.copy_from_cpu(words.values.numpy())
    handle.set_lod([words.offsets[0].tolist()])
    predictor.run()
    tags = predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()
    found = whole(words)
    assert np.array_equal(found.values.numpy(), tags) and found.offsets[0].tolist() == [0, 5, 8, 17]
    module = oprack_torch.Module(LAC, outputs=crf.inputs["Emission"])
    transition = nn.Parameter(whole.variable(crf.inputs["Transition"][0]).detach().clone())
    step = torch.optim.Adam([*module.parameters(), transition], lr=1e-3)
    other = Sequences((found.values + 1) % 49, words.offsets)
    losses = []
    for _ in range(3):
        likelihood = ops.linear_chain_crf(module(words), label=other, transition=transition)
        loss = (likelihood.values if isinstance(likelihood, Sequences) else likelihood).mean()
        step.zero_grad()
        loss.backward()
        step.step()
        losses.append(loss.item())
    assert losses[0] > losses[1] > losses[2]
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in module.parameters())
