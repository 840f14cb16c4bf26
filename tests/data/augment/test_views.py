"""Weak and strong views: against slow loops, and what every view must hold."""

import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from labelsieve.data.augment import weak
from labelsieve.data.augment.policies import OPERATIONS, POLICIES, Edit
from labelsieve.data.augment.strong import SKIP, Strong, views_for
from labelsieve.data.augment.weak import Weak
from labelsieve.errors import UsageError

from . import test_geometry, test_tone
from .pictures import BATCHES, digits, from_pillow, patches, to_pillow

skip_without_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def makers(images: Tensor) -> list[Weak | Strong]:
    shape = tuple(images.shape[1:])
    made = [views_for(shape, mirror, policy) for policy in POLICIES for mirror in (True, False)]
    return [maker for views in made for maker in (views.weak, views.strong)]


def padded_cropped_mirrored(image: np.ndarray, pad: int, top: int, left: int, mirrored: bool) -> np.ndarray:
    """The obvious loop: (C, H, W) in and out."""
    channels, height, width = image.shape
    view = np.zeros_like(image)
    for channel in range(channels):
        for y in range(height):
            for x in range(width):
                from_y, from_x = y + top - pad, x + left - pad
                if 0 <= from_y < height and 0 <= from_x < width:
                    view[channel, y, x] = image[channel, from_y, width - 1 - from_x if mirrored else from_x]
    return view


@pytest.mark.parametrize("mirror", [True, False])
@pytest.mark.parametrize("batch", ["rgb 20x37", "digits 8x8"])
def test_weak_is_the_obvious_loop(batch: str, mirror: bool) -> None:
    images, weak = BATCHES[batch][:12], Weak(pad=3, mirror=mirror)
    plan = weak.draw(len(images), tuple(images.shape[1:]), seeded())
    assert plan.mirrored.any() == mirror
    for row, view in enumerate(weak.apply(images, plan)):
        where = int(plan.top[row]), int(plan.left[row]), bool(plan.mirrored[row])
        assert np.array_equal(view.numpy(), padded_cropped_mirrored(images[row].numpy(), 3, *where))


def test_weak_without_padding_or_mirror_changes_nothing() -> None:
    images = BATCHES["rgb 32x32"]
    assert torch.equal(Weak(0, False)(images, seeded()), images)


def test_weak_draws_are_even() -> None:
    plan = Weak(pad=4, mirror=True).draw(20_000, (3, 32, 32), seeded())
    for corner in (plan.top, plan.left, plan.top * 9 + plan.left):
        assert chisquare(np.bincount(corner.numpy())).pvalue > 1e-4
    assert len(torch.unique(plan.top * 9 + plan.left)) == 81
    assert abs(plan.mirrored.double().mean().item() - 0.5) < 0.02


@pytest.mark.parametrize("policy", POLICIES)
def test_strong_is_the_weak_view_taken_through_pillow(policy: str) -> None:
    """Step by step with Pillow, picture by picture. Few pixels are off by more than a level or two."""
    images = patches(150, 32, 32)
    strong = views_for((3, 32, 32), True, policy).strong
    plan = strong.draw(len(images), (3, 32, 32), seeded(3))
    views, weak = strong.apply(images, plan), strong.weak.apply(images, plan.weak)
    off = 0.0
    for row in range(len(images)):
        picture = to_pillow(weak[row])
        for code, amount in zip(plan.operations[row].tolist(), plan.amounts[row].tolist(), strict=True):
            if code == SKIP:
                continue
            if code < 5:
                how = (strong.fill, strong.resample)
                picture = test_geometry.with_pillow(OPERATIONS[code], picture, amount, *how)
            else:
                picture = test_tone.with_pillow(OPERATIONS[code], picture, amount)
        off += ((views[row].int() - from_pillow(picture).int()).abs() > 2).double().mean().item()
    assert off / len(images) < 0.002


def test_strong_draws_sub_policies_evenly_and_steps_by_their_probability() -> None:
    """Every sub-policy has amounts of its own here, so that the plan shows which one was drawn."""
    policy = tuple((Edit("Rotate", 0.1 * k, 1 + k), Edit("Solarize", 1 - 0.1 * k, 10 + k)) for k in range(11))
    count = 44_000
    plan = Strong(policy, Weak(0, False)).draw(count, (1, 8, 8), seeded())
    chosen = (plan.amounts[:, 1] - 10).long()
    assert chisquare(np.bincount(chosen.numpy(), minlength=11)).pvalue > 1e-4
    done = (plan.operations != SKIP).double()
    for k in range(11):
        share = done[chosen == k].mean(0).tolist()
        assert share == pytest.approx([0.1 * k, 1 - 0.1 * k], abs=0.03)
    assert (plan.amounts[:, 0].abs() - 1 == chosen).all()
    assert abs((plan.amounts[:, 0] < 0).double().mean().item() - 0.5) < 0.02
    assert (plan.amounts[:, 1] > 0).all()


def test_shifts_are_shares_of_the_side_they_go_along() -> None:
    policy = ((Edit("TranslateX", 1.0, 0.25), Edit("TranslateY", 1.0, 0.25)),)
    plan = Strong(policy, Weak(0, False)).draw(9, (3, 20, 40), seeded())
    assert plan.amounts.abs().tolist() == [[10.0, 5.0]] * 9


@pytest.mark.parametrize("policy", POLICIES)
def test_strong_views_differ_from_picture_to_picture(policy: str) -> None:
    images = patches(1, 32, 32).expand(64, -1, -1, -1)
    views = views_for((3, 32, 32), True, policy).strong(images, seeded())
    assert len(torch.unique(views.flatten(1), dim=0)) > 55


@pytest.mark.parametrize("images", [patches(40, 32, 32), digits(40), patches(20, 19, 23, 4)], ids=["rgb", "grey", "four"])
def test_views_keep_type_and_shape_repeat_by_seed_and_leave_their_input_alone(images: Tensor) -> None:
    before = images.clone()
    for maker in makers(images):
        views = maker(images, seeded(5))
        assert views.dtype == torch.uint8 and views.shape == images.shape
        assert torch.equal(views, maker(images, seeded(5)))
        leaves_alone = maker == Weak(pad=0, mirror=False)  # what tiny pictures get
        assert torch.equal(views, maker(images, seeded(6))) == leaves_alone
    assert torch.equal(images, before)


def test_a_picture_is_augmented_alone_as_in_a_batch() -> None:
    images = patches(60, 32, 32)
    for maker in makers(images):
        plan = maker.draw(60, (3, 32, 32), seeded())
        together = maker.apply(images, plan)
        alone = [maker.apply(images[row : row + 1], plan.rows(slice(row, row + 1))) for row in range(60)]
        assert torch.equal(together, torch.cat(alone))


def test_small_spans_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    images = patches(60, 32, 32)
    whole = [maker(images, seeded()) for maker in makers(images)]
    monkeypatch.setattr(weak, "HOST_VALUES", 3 * 32 * 32 * 3)
    for maker, views in zip(makers(images), whole, strict=True):
        assert torch.equal(maker(images, seeded()), views)


def test_memory_layout_does_not_matter() -> None:
    images = patches(30, 32, 32)
    spread = torch.zeros(60, 3, 32, 40, dtype=torch.uint8)
    spread[::2, :, :, 5:37] = images
    for maker in makers(images):
        views = maker(images, seeded())
        assert torch.equal(maker(images.contiguous(memory_format=torch.channels_last), seeded()), views)
        assert torch.equal(maker(spread[::2, :, :, 5:37], seeded()), views)


def test_an_empty_batch_stays_empty() -> None:
    images = torch.empty(0, 3, 32, 32, dtype=torch.uint8)
    for maker in makers(images):
        assert maker(images, seeded()).shape == images.shape


class NoReading(TorchDispatchMode):
    """Fails on what would make the host wait for a device: a value read back, or a shape known only to it."""

    WAITS = (
        "_local_scalar_dense",
        "nonzero",
        "masked_select",
        "unique",
        "bincount",
        "is_nonzero",
        "equal.default",
    )

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        assert not any(name in str(func) for name in self.WAITS), f"{func} reads back from the device"
        flags = args[1] if str(func).startswith(("aten.index.", "aten.index_put")) else ()
        assert not any(flag is not None and flag.dtype == torch.bool for flag in flags), f"{func} by a mask"
        return func(*args, **(kwargs or {}))


def test_the_guard_sees_a_read() -> None:
    with NoReading(), pytest.raises(AssertionError, match="reads back"):
        torch.ones(3)[0].item()
    with NoReading(), pytest.raises(AssertionError, match="by a mask"):
        torch.ones(3)[torch.ones(3) > 0]


def test_apply_never_reads_from_the_device() -> None:
    images = patches(200, 32, 32)
    for maker in makers(images):
        plan = maker.draw(200, (3, 32, 32), seeded())
        with NoReading():
            maker.apply(images, plan)


@pytest.mark.gpu
@skip_without_gpu
def test_views_are_the_same_on_a_gpu() -> None:
    for images in (patches(3000, 32, 32), patches(500, 28, 28, 1), patches(100, 19, 23, 4)):
        for maker in makers(images):
            assert torch.equal(maker(images.cuda(), seeded()).cpu(), maker(images, seeded()))


@pytest.mark.gpu
@skip_without_gpu
def test_apply_does_not_wait_for_a_gpu() -> None:
    images = patches(300, 32, 32).cuda()
    for maker in makers(images):
        plan = maker.draw(300, (3, 32, 32), seeded())
        torch.cuda.set_sync_debug_mode("error")
        try:
            maker.apply(images, plan)
        finally:
            torch.cuda.set_sync_debug_mode("default")


@pytest.mark.parametrize(("size", "pad"), [((15, 40), 0), ((16, 16), 2), ((28, 28), 4), ((32, 32), 4), ((64, 24), 3)])
def test_the_padding_is_an_eighth_of_the_shorter_side_and_none_for_tiny_pictures(size: tuple[int, int], pad: int) -> None:
    assert views_for((1, *size), mirror=False).weak.pad == pad


def test_auto_chooses_by_whether_pictures_may_be_mirrored() -> None:
    assert views_for((3, 32, 32), True) == views_for((3, 32, 32), True, "autoaugment-cifar10")
    upright = views_for((1, 8, 8), False)
    assert upright == views_for((1, 8, 8), False, "upright")
    assert (upright.strong.fill, upright.strong.resample, upright.weak.mirror) == (0, "bilinear", False)


def test_mistakes_are_named() -> None:
    with pytest.raises(UsageError, match='"upright"'):
        views_for((1, 8, 8), False, "uprihgt")
    with pytest.raises(UsageError, match='did you mean "Rotate"'):
        Strong(((Edit("Rotat", 1.0), Edit("Invert", 1.0)),), Weak(1, False))
    with pytest.raises(UsageError, match="bicubic"):
        Strong(POLICIES["upright"].policy, Weak(1, False), resample="bicubic")
    with pytest.raises(UsageError, match="grey level"):
        Strong(POLICIES["upright"].policy, Weak(1, False), fill=300)
    with pytest.raises(UsageError, match="sub-policy"):
        Strong((), Weak(1, False))
    with pytest.raises(UsageError, match="pad=-1"):
        Weak(-1, False)


def test_pictures_must_fit_the_plan() -> None:
    images = patches(4, 16, 16)
    for maker in makers(images):
        with pytest.raises(UsageError, match="plan is for 5"):
            maker.apply(images, maker.draw(5, (3, 16, 16), seeded()))
        with pytest.raises(UsageError, match="plan is for 4"):
            maker.apply(images, maker.draw(4, (3, 16, 18), seeded()))
        with pytest.raises(UsageError, match="uint8"):
            maker(images.float(), seeded())
        with pytest.raises(UsageError, match="batch"):
            maker(images[0], seeded())
