"""Views smaller than their pictures: cut out at every place, mirrored half the time, strong ones made of the weak ones."""

import pytest
import torch

from labelsieve.data.augment.policies import Edit
from labelsieve.data.augment.strong import Strong, views_for
from labelsieve.data.augment.weak import Weak
from labelsieve.errors import UsageError

SHAPE = (3, 7, 9)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def pictures(count: int = 40) -> torch.Tensor:
    return torch.randint(0, 256, (count, *SHAPE), dtype=torch.uint8, generator=seeded(9))


def test_a_crop_is_a_window_of_the_picture_or_of_its_mirror_image() -> None:
    images, weak = pictures(), Weak(0, True, side=5)
    plan = weak.draw(40, SHAPE, seeded())
    views = weak.apply(images, plan)
    assert views.shape == (40, 3, 5, 5) and views.is_contiguous()
    for image, view, top, left, mirrored in zip(images, views, plan.top, plan.left, plan.mirrored):
        source = image.flip(-1) if mirrored else image
        assert torch.equal(view, source[:, top : top + 5, left : left + 5])


def test_every_place_is_drawn() -> None:
    plan = Weak(0, True, side=5).draw(2000, SHAPE, seeded())
    assert set(plan.top.tolist()) == {0, 1, 2} and set(plan.left.tolist()) == {0, 1, 2, 3, 4}
    assert 850 < int(plan.mirrored.sum()) < 1150


def test_evaluation_sees_the_middle() -> None:
    images = pictures(2)
    assert torch.equal(views_for(SHAPE, True, crop=5).plain(images), images[:, :, 1:6, 2:7])
    assert views_for(SHAPE, True).plain(images) is images


def test_a_shift_is_a_share_of_what_is_seen() -> None:
    policy = ((Edit("TranslateX", 1.0, 0.5), Edit("TranslateY", 1.0, 0.5)),)
    plan = Strong(policy, Weak(0, False, side=4)).draw(3, SHAPE, seeded())
    assert plan.amounts.abs().tolist() == [[2.0, 2.0]] * 3


def test_strong_views_have_the_crops_shape() -> None:
    views = views_for((3, 24, 24), True, "autoaugment-imagenet", crop=16)
    assert views.strong(torch.zeros(5, 3, 24, 24, dtype=torch.uint8), seeded()).shape == (5, 3, 16, 16)


def test_a_crop_larger_than_the_picture_is_refused() -> None:
    with pytest.raises(UsageError, match="a crop of 8 pixels does not fit pictures of 7x9"):
        Weak(0, True, side=8).draw(1, SHAPE, seeded())
