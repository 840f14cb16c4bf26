"""`augdmix`: DivideMix that guesses from weak views and trains on strong ones.

Nishi, Ding, Rich, Höllerer: Augmentation Strategies for Learning with Noisy Labels, CVPR 2021 ("AugDesc-WS"), the paper's
baseline. Paper (theirs): CIFAR-100 sym 90 % 41.20; ours: 37.40 in 400 epochs (RESULTS.md).
"""

from labelsieve.methods.dividemix import DivideMix


class AugDMix(DivideMix):
    name = "augdmix"
    varies = True
