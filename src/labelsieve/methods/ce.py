"""`ce`: plain cross-entropy on the given labels with one network. The baseline, and the warm-up of methods that divide labels.

Digits with 40 % symmetric noise, `labelsieve train digits --method ce --noise sym:0.4`: see RESULTS.md, "Plain training".
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor

from labelsieve.config.setting import setting
from labelsieve.methods.contract import Look, Method, Phase, Terms, View
from labelsieve.methods.net import Net
from labelsieve.methods.parts import losses, streams


class CrossEntropy(Method):
    name = "ce"
    own_section = False  # training.*

    @dataclass(frozen=True)
    class Config:
        entropy_penalty: bool = setting(False, "add negative entropy to the loss, against over-confidence")

    def phases(self, epoch: int, look: Look) -> Iterator[Phase]:
        yield plain_epoch(self, self.nets[0], epoch, self.c.entropy_penalty)


def plain_epoch(method: Method, net: Net, epoch: int, entropy_penalty: bool, name: str = "warm-up") -> Phase:
    """An epoch of cross-entropy on weak views of all samples, or of those that the epoch draws."""
    order = method.order(net, epoch, method.stream(streams.WARM_UP_ORDER, epoch, net), method.training.warmup_batch)
    return Phase(
        name,
        cross_entropy_step,
        (net,),
        views={"pictures": View(order, "weak", streams.WARM_UP_VIEWS)},
        tensors={"labels": method.facts.given[order], "lr": method.rates(epoch, len(order))},
        fixed=(net, entropy_penalty),
    )


def cross_entropy_step(net: Net, entropy_penalty: bool, pictures: Tensor, labels: Tensor, lr: Tensor) -> Terms:
    logits, _ = net.look(pictures)
    loss = F.cross_entropy(logits, labels)
    if entropy_penalty:
        loss = loss + losses.negative_entropy(logits)
    net.descend(loss, lr)
    return {"cross_entropy": loss}
