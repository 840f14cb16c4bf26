"""The plain engine: evidence is one eval pass over plain pictures, in the rows' order."""

import pytest
import torch

from labelsieve.data.augment.strong import views_for
from labelsieve.data.noisy_data import NoisyData
from labelsieve.engine.device import choose_device
from labelsieve.engine.plain import PlainEngine
from labelsieve.errors import UsageError
from labelsieve.methods.contract import Phase, View
from labelsieve.methods.net import Net, scale
from labelsieve.nets import build

MEAN, STD = (0.4, 0.5, 0.6), (0.2, 0.25, 0.3)


@pytest.fixture
def data() -> NoisyData:
    g = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (37, 3, 8, 8), generator=g).to(torch.uint8)
    return NoisyData(images, torch.arange(37) % 4, tuple(map(str, range(37))), tuple("abcd"))


@pytest.fixture
def net() -> Net:
    mean, std = (scale(values, 3, "cpu") for values in (MEAN, STD))
    return Net(0, build("small", 3, 4, 0), mean, std)


def engine_of(data: NoisyData, batch: int = 512) -> PlainEngine:
    return PlainEngine(data, views_for(data.shape, True), "cpu", batch)


def test_evidence_by_hand(data: NoisyData, net: Net) -> None:
    seen = engine_of(data).evidence(net)
    network = net.network.eval()
    for i in range(len(data)):
        pixels = [(data.images[i, c] / 255 - MEAN[c]) / STD[c] for c in range(3)]
        with torch.no_grad():
            logits, v = network(torch.stack(pixels).unsqueeze(0))
        p = logits.softmax(1)[0]
        torch.testing.assert_close(seen.probs[i], p, rtol=0, atol=1e-5)
        torch.testing.assert_close(seen.losses[i], -p[data.labels[i]].log(), rtol=0, atol=1e-4)
        torch.testing.assert_close(seen.features[i], v[0], rtol=0, atol=1e-4)
    assert torch.equal(seen.labels, data.labels)


@pytest.mark.parametrize("batch", [1, 5, 37, 100])
def test_the_batch_does_not_matter(batch: int, data: NoisyData, net: Net) -> None:
    whole, parts = engine_of(data).evidence(net), engine_of(data, batch).evidence(net)
    torch.testing.assert_close(parts.losses, whole.losses, rtol=0, atol=1e-5)
    torch.testing.assert_close(parts.features, whole.features, rtol=0, atol=1e-5)


def test_looking_changes_no_state_and_carries_no_gradient(data: NoisyData, net: Net) -> None:
    net.train()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    seen = engine_of(data).evidence(net)
    assert not seen.losses.requires_grad and not seen.features.requires_grad
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())


def test_views_belong_to_their_rows_and_generator(data: NoisyData) -> None:
    engine = engine_of(data)
    rows = torch.tensor([5, 5, 30])
    for make in (engine.weak, engine.strong):
        first = make(rows, torch.Generator().manual_seed(1))
        assert first.shape == (3, 3, 8, 8) and first.dtype == torch.uint8
        assert torch.equal(first, make(rows, torch.Generator().manual_seed(1)))
        assert not torch.equal(first, make(rows, torch.Generator().manual_seed(2)))


def test_normalisation_is_that_of_pixels_in_0_to_1(net: Net) -> None:
    """Normalising after mixing is the same as mixing what was normalised."""
    g = torch.Generator().manual_seed(3)
    first, second = torch.randint(0, 256, (2, 4, 3, 8, 8), generator=g).float()
    net.network.eval()
    means, stds = (torch.tensor(values).view(1, 3, 1, 1) for values in (MEAN, STD))
    mixed = 0.7 * (first / 255 - means) / stds + 0.3 * (second / 255 - means) / stds
    with torch.no_grad():
        expected, got = net.network(mixed)[0], net.look(0.7 * first + 0.3 * second)[0]
    torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)


def test_prepare_fixes_the_first_arguments_and_names_the_terms(data: NoisyData, net: Net) -> None:
    def step(a: int, views: torch.Tensor, share: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"sum": views.sum() + a, "share": share}

    views, tensors = {"views": View(torch.zeros(2, 1, dtype=torch.int64))}, {"share": torch.tensor([0.25, 0.5])}
    prepared = engine_of(data).prepare(Phase("plain", step, (net,), views, tensors, fixed=(7,)))
    assert prepared(torch.tensor([1.0, 2.0]), tensors["share"][1]).tolist() == [10, 0.5]
    assert prepared.terms == ("sum", "share")


def test_pictures_that_stay_on_the_host_give_the_same(data: NoisyData, net: Net) -> None:
    here, there = (PlainEngine(data, views_for(data.shape, True), "cpu", 8, where) for where in ("auto", "host"))
    assert here.on_device and not there.on_device
    rows = torch.tensor([3, 3, 36, 0, 3, 17])
    for kind in ("weak", "strong"):
        one, other = (getattr(engine, kind)(rows, torch.Generator().manual_seed(1)) for engine in (here, there))
        assert torch.equal(one, other)
    assert torch.equal(there.pictures(torch.tensor([5, 5, 2])), data.images[[5, 5, 2]]), "not those of the rows before"
    for some in (None, rows):
        one, other = (engine.evidence(net, some) for engine in (here, there))
        assert torch.equal(one.losses, other.losses) and torch.equal(one.labels, other.labels)


def test_some_rows_are_gathered_as_in_the_whole(data: NoisyData, net: Net) -> None:
    whole, rows = engine_of(data).evidence(net), torch.tensor([30, 2, 2, 11])
    some = engine_of(data, 3).evidence(net, rows)
    torch.testing.assert_close(some.losses, whole.losses[rows], rtol=0, atol=1e-5)
    assert torch.equal(some.labels, data.labels[rows])


def test_evidence_of_cropped_pictures_is_that_of_their_middle(data: NoisyData, net: Net) -> None:
    cropped = PlainEngine(data, views_for(data.shape, True, crop=4))
    middle = NoisyData(data.images[..., 2:6, 2:6].contiguous(), data.labels, data.ids, data.classes)
    torch.testing.assert_close(cropped.evidence(net).losses, engine_of(middle).evidence(net).losses, rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["cpu:", "cuda:", "auto:", "cuda:\u00b2", "cuda:-1", "cuda: 0"])
def test_a_device_that_is_half_said_is_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 3)
    with pytest.raises(UsageError, match="is not known.*; use auto, cpu, cuda or cuda:N$"):
        choose_device(name)
    assert choose_device("cuda:2") == choose_device("cuda:02") == torch.device("cuda", 2)
    assert choose_device("cuda").index is None and choose_device("cpu") == torch.device("cpu")


def test_a_missing_gpu_is_told_for_the_command_line_and_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UsageError, match='sees no CUDA device here; use --device cpu, in Python device="cpu"$'):
        choose_device("cuda")
