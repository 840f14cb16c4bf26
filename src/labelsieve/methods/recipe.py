"""The method's numbers in one place, as the paper and DivideMix name them. Nothing here depends on a data set or a device."""

from dataclasses import dataclass, field

from labelsieve.methods.parts.subsets import EveryRow, Sampler


@dataclass(frozen=True)
class Recipe:
    """Fractions of an epoch do not exist here: every length is in whole epochs, counted from 0."""

    epochs: int
    warmup: int  # epochs of plain cross-entropy; as long as the run, this is the method `ce`
    prototype_warmup: int  # e: epochs after the warm-up in which the mixture divides
    batch: int = 128
    warmup_batch: int = 128
    lr: float = 0.02
    lr_drop_epoch: int = 225
    lr_drop_factor: float = 10.0
    momentum: float = 0.9
    weight_decay: float = 5e-4
    lambda_u: float = 25.0
    ramp_epochs: int = 16
    temperature: float = 0.5
    beta: float = 4.0
    guess_passes: int = 1  # over a step's weak views; 1: all together, 2: labelled apart from unlabelled, 4: each view
    norm_devices: int = 1  # BatchNorm sees each batch as DataParallel on so many devices would show it
    prior_weight: float = 1.0
    entropy_penalty: bool = False  # in the warm-up, for asymmetric noise
    train_unlabelled: bool = True  # False on the web sets: the unlabelled half is mixed in, not trained on
    mixture_threshold: float = 0.5
    tau: float = 0.5
    prototype_teacher: str = "peer"  # whose mixture partition a network's prototypes learn from: peer or own
    judge_first: bool = False  # prototypes judge before they learn (Alg. 1 lines 8-9), not after (section 4.1)
    prototype_views: str = "plain"  # what they learn from: features of the plain pictures, or of a weak view of each
    least_clean: float = 0.0  # at least this share of the labels is taken as clean
    mixed: bool = True  # False: cross-entropy on all labels; divisions are made, and nothing follows from them,
    caught_up: float = -1.0  # until the networks contradict no more labels than this share: from then on epochs are mixed
    strong_views: bool = True  # False: mixed pictures are the weak views, as in DivideMix
    sampler: Sampler = field(default_factory=EveryRow)  # which rows an epoch sees
    seed: int = 0

    def lr_at(self, epoch: int) -> float:
        return self.lr if epoch < self.lr_drop_epoch else self.lr / self.lr_drop_factor

    def may_begin_to_mix(self, epoch: int) -> bool:
        """While half of the epochs at the full learning rate are ahead: later, mixing costs more than it can win back."""
        return 2 * epoch < self.warmup + self.lr_drop_epoch

    def divides_by_prototypes(self, epoch: int) -> bool:
        """Alg. 1 line 18: the mixture divides while the prototypes warm up."""
        return epoch >= self.warmup + self.prototype_warmup
