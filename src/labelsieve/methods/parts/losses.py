"""The equations of the paper and of MixMatch, which it builds on, as pure functions. PAPER.md maps them to their tests.

Letters: N samples, K classes, v' (`embeddings`, (N, d)) the projected feature, C (`prototypes`, (K, d)), y (`labels`, (N,)) the
given label, p (`probs`, (N, K)) the softmax, q(z=0) or w the chance that a label is clean, X and U clean and noisy set, X^P
the confident samples of U, T the temperature, l the mixing share. A loss over a set is the mean over it; an empty set gives 0.
Sets come as samples (all rows count) or as a 0/1 `weight` per row, which keeps shapes static where a step is captured.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor


def set_mean(values: Tensor, weight: Tensor | None = None) -> Tensor:
    """Mean of `values` (N,) over the rows with weight, 0 for an empty set; no division by zero on either side."""
    if weight is None:
        return values.sum() / max(len(values), 1)
    weight = weight.to(values.dtype)
    return (values * weight).sum() / weight.sum().clamp_min(1)


def similarity(embeddings: Tensor, prototypes: Tensor) -> Tensor:
    """v' c^T for every class: (N, K)."""
    return embeddings @ prototypes.T


def own_similarity(embeddings: Tensor, prototypes: Tensor, labels: Tensor) -> Tensor:
    """v'_i c_{y_i}^T: (N,)."""
    return (embeddings * prototypes[labels]).sum(-1)


def clean_score(embeddings: Tensor, prototypes: Tensor, labels: Tensor) -> Tensor:
    """q(z_i = 0) = sigmoid(v'_i c_{y_i}^T), section 4.2's last paragraph: (N,)."""
    return torch.sigmoid(own_similarity(embeddings, prototypes, labels))


def clean_loss(
    embeddings: Tensor,
    prototypes: Tensor,
    labels: Tensor,
    weight: Tensor | None = None,
    negative: float | None = None,
) -> Tensor:
    """L_X, Eq. 2: draw clean samples to their prototype, and push them from the others with lambda_neg = 1/K."""
    return _clean(similarity(embeddings, prototypes), labels, weight, negative)


def noisy_loss(embeddings: Tensor, prototypes: Tensor, labels: Tensor, weight: Tensor | None = None) -> Tensor:
    """L_U, Eq. 3: push noisy samples from the prototype of the label they were given."""
    return _noisy(similarity(embeddings, prototypes), labels, weight)


def confident_loss(embeddings: Tensor, prototypes: Tensor, predicted: Tensor, weight: Tensor | None = None) -> Tensor:
    """L_XP, Eq. 4: draw confident noisy samples to the prototype of the class that is predicted."""
    return _confident(similarity(embeddings, prototypes), predicted, weight)


def _clean(scores: Tensor, labels: Tensor, weight: Tensor | None, negative: float | None = None) -> Tensor:
    """L_X of the similarities (N, K)."""
    negative = 1 / scores.shape[1] if negative is None else negative
    own = _members(labels, scores.shape[1]).to(scores.dtype)
    per_class = own * F.logsigmoid(scores) + negative * (1 - own) * F.logsigmoid(-scores)
    return set_mean(-per_class.sum(-1), weight)


def _noisy(scores: Tensor, labels: Tensor, weight: Tensor | None) -> Tensor:
    return set_mean(-F.logsigmoid(-_chosen(scores, labels)), weight)


def _confident(scores: Tensor, predicted: Tensor, weight: Tensor | None) -> Tensor:
    return set_mean(-F.logsigmoid(_chosen(scores, predicted)), weight)


def _chosen(scores: Tensor, classes: Tensor) -> Tensor:
    """scores (N, K) at one class a row, (N,). By a mask: its gradient is a product, where a gather's is scattered by atomics."""
    return torch.where(_members(classes, scores.shape[1]), scores, 0.0).sum(-1)


def _members(labels: Tensor, classes: int) -> Tensor:
    """Which class (N, K) each row belongs to. Without the checks of `one_hot`, which are kernels of their own in a small step."""
    return labels.unsqueeze(1) == torch.arange(classes, device=labels.device)


def confident_noisy(probs: Tensor, labels: Tensor, clean: Tensor) -> Tensor:
    """The mask of X^P (section 4.2): noisy samples whose p_k exceeds the mean p_k of the clean samples labelled k.

    k is the sample's predicted class. A class without clean samples has no threshold, so nothing is confident in it.
    """
    classes = probs.shape[1]
    clean = clean.to(torch.bool)
    members = F.one_hot(labels, classes).to(probs.dtype) * clean.unsqueeze(1)
    count = members.sum(0)
    threshold = torch.where(count > 0, (members * probs).sum(0) / count.clamp_min(1), torch.inf)
    confidence, predicted = probs.max(1)
    return ~clean & (confidence > threshold[predicted])


def prototype_loss(
    embeddings: Tensor,
    prototypes: Tensor,
    labels: Tensor,
    clean: Tensor,
    predicted: Tensor | None = None,
    confident: Tensor | None = None,
    alpha: float = 0.0,
    weight: Tensor | None = None,
) -> Tensor:
    """L_C = L_X + L_U + alpha L_XP, Eq. 5. `clean` and `confident` are masks (N,); `weight` 0 leaves a row out."""
    clean = clean.to(embeddings.dtype)
    rows = torch.ones_like(clean) if weight is None else weight.to(embeddings.dtype)
    scores = similarity(embeddings, prototypes)
    loss = _clean(scores, labels, clean * rows) + _noisy(scores, labels, (1 - clean) * rows)
    if alpha and predicted is not None and confident is not None:
        loss = loss + alpha * _confident(scores, predicted, confident.to(rows.dtype) * rows)
    return loss


def labelled_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """The vicinal risk's first term (Eq. 1, appendix A.1): soft cross-entropy, mean over samples."""
    return set_mean(-(targets * F.log_softmax(logits, 1)).sum(1))


def unlabelled_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """The vicinal risk's second term, before lambda_u: squared error of the softmax, mean over samples and classes."""
    return set_mean((torch.softmax(logits, 1) - targets).square().mean(1))


def prior_penalty(logits: Tensor, prior: Tensor) -> Tensor:
    """Sum over classes of prior log(prior / mean softmax): keeps one class from swallowing the rest."""
    mean = torch.softmax(logits, 1).mean(0)
    return (prior * (torch.log(prior.clamp_min(1e-12)) - torch.log(mean.clamp_min(1e-12)))).sum()


def negative_entropy(logits: Tensor) -> Tensor:
    """Mean of sum p log p: added to the warm-up under asymmetric noise, against over-confidence."""
    return set_mean((torch.softmax(logits, 1) * F.log_softmax(logits, 1)).sum(1))


def cross_entropies(logits: Tensor, labels: Tensor) -> Tensor:
    """The per-sample loss that the mixture looks at: (N,)."""
    return F.cross_entropy(logits, labels, reduction="none")


def sharpen(probs: Tensor, temperature: float) -> Tensor:
    """p^(1/T), renormalised over classes: (N, K). Through logarithms: a low T would power every share down to 0."""
    return torch.softmax(probs.clamp_min(1e-12).log() / temperature, 1)


def refine(given: Tensor, guessed: Tensor, w: Tensor, temperature: float) -> Tensor:
    """Labelled targets: w y + (1 - w) guess, sharpened. `given` one-hot (B, K), `guessed` (B, K), `w` (B,)."""
    w = w.unsqueeze(1)
    return sharpen(w * given + (1 - w) * guessed, temperature)


def guess(views: Sequence[Tensor], temperature: float) -> Tensor:
    """Unlabelled targets: the mean of both networks' softmax over the weak views, sharpened."""
    return sharpen(torch.stack(tuple(views)).mean(0), temperature)


def mix(first: Tensor, second: Tensor, share: Tensor) -> Tensor:
    """l a + (1 - l) b, with one l for the whole step."""
    return share * first + (1 - share) * second


def mixing_shares(steps: int, beta: float, generator: torch.Generator) -> Tensor:
    """l ~ Beta(a, a), l = max(l, 1 - l), one for each step: (steps,)."""
    share = beta_draws(steps, beta, generator)
    return torch.maximum(share, 1 - share).to(torch.float32)


def beta_draws(count: int, beta: float, generator: torch.Generator) -> Tensor:
    """Beta(a, a), (count,) float64. Two Gamma draws make a Beta draw."""
    shape = torch.full((2, count), float(beta), dtype=torch.float64)
    gammas = torch._standard_gamma(shape, generator=generator)
    return gammas[0] / gammas.sum(0)


def ramp(epoch: float, start: float, length: float) -> float:
    """Linear from 0 at `start` to 1 at `start + length`; `epoch` moves with every step."""
    if length <= 0:
        return 1.0
    return min(max((epoch - start) / length, 0.0), 1.0)
