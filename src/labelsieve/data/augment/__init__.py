"""Augmentation of whole batches: uint8 pictures (M, C, H, W) in, weak or strong views of the same shape out.

`views_for` gives both kinds. Each is drawn (`draw`: on the host, numbers of its own for every picture) apart
from being made (`apply`: on any device, never waiting for it), so one seed gives the same views everywhere.
`vector_views` gives both kinds for vectors, float32 (M, D).
"""

from labelsieve.data.augment.policies import (
    AUTOAUGMENT_CIFAR10,
    AUTOAUGMENT_IMAGENET,
    OPERATIONS,
    POLICIES,
    UPRIGHT,
    Policy,
    Recipe,
    Step,
)
from labelsieve.data.augment.strong import Strong, StrongPlan
from labelsieve.data.augment.vectors import Shaken, VectorPlan, VectorViews, vector_views
from labelsieve.data.augment.views import Views, views_for
from labelsieve.data.augment.weak import Weak, WeakPlan

__all__ = [
    "AUTOAUGMENT_CIFAR10",
    "AUTOAUGMENT_IMAGENET",
    "OPERATIONS",
    "POLICIES",
    "UPRIGHT",
    "Policy",
    "Recipe",
    "Shaken",
    "Step",
    "Strong",
    "StrongPlan",
    "VectorPlan",
    "VectorViews",
    "Views",
    "Weak",
    "WeakPlan",
    "vector_views",
    "views_for",
]
