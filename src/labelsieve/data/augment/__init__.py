"""Weak and strong views of whole batches of pictures, uint8 (M, C, H, W), or of vectors, float32 (M, D).

`views_for` and `vector_views` give both kinds. A view is drawn on the host (`draw`: random numbers for each picture) and
applied on any device without waiting for it (`apply`), so one seed gives the same views everywhere.
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
