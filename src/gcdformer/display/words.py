"""Rules, numbers and configurations in words, for the terminal, pages, the lab and notebooks. Plain text, no markup."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from math import prod
from typing import Literal

from gcdformer.config import TESTED_GCDS, Config, prior_in_words
from gcdformer.evaluation.table import readable
from gcdformer.explanation.bands import Band
from gcdformer.explanation.certificate import Explanation
from gcdformer.explanation.rules import NotAllProducts, Rule
from gcdformer.explanation.sieve import components, prime_power, products
from gcdformer.explanation.statistics import Fidelity
from gcdformer.explanation.timeline import Timeline
from gcdformer.tasks import TASKS

SHOWN = 12
"""Integers that a sentence lists before it only counts them."""
Mark = Literal["yes", "wait", "no", "none"]
CLASS_COLUMNS = ("class", "predicted", "share", "values", "bits", "members")


def rule_words(explanation: Explanation) -> list[tuple[str, Rule]]:
    """Each rule of the explanation with what it says, and its status where it neither plainly holds nor is broken."""
    return [(explanation.form.sentences[name] + as_far_as_decided(explanation, name) + status(explanation, rule), rule)
            for name, rule in explanation.rules.items()]


def as_far_as_decided(explanation: Explanation, name: str) -> str:
    """What the rule on products adds if some k may be in D or not."""
    if name != "products" or explanation.form.set_name != "D" or not explanation.undecided:
        return ""
    are = "are" if len(explanation.undecided) > 1 else "is"
    return f", as far as decided ({numbers(explanation.undecided, SHOWN)} {are} not)"


def rule_mark(rule: Rule) -> Mark:
    """`yes` it holds, `wait` it holds but for k being learned or undecided, `no` it has exceptions, `none` it was not
    judged."""
    if not rule.judged:
        return "none"
    return "no" if rule.exceptions else "wait" if rule.excused or rule.undecided else "yes"


def status(explanation: Explanation, rule: Rule) -> str:
    mark = rule_mark(rule)
    if mark == "none":
        return ": not judged, " + ("every k is being learned" if rule.excused else "no k was tested often enough")
    if mark != "wait":
        return ""
    early = [breach.k for breach in rule.excused if isinstance(breach, NotAllProducts) and not breach.missing]
    late = [breach.k for breach in rule.excused if breach.k not in early]
    parts = [numbers(late, SHOWN)] if late else []
    if early:
        missing = sorted({q for k in early for q in components(k) if q not in explanation.correct})
        parts.append(f"{numbers(early, SHOWN)} {'are' if len(early) > 1 else 'is'} in D before {numbers(missing)}")
    kinds = [f"{len(rule.excused)} being learned ({'; '.join(parts)})"] if rule.excused else []
    if rule.undecided:
        kinds.append(f"{len(rule.undecided)} undecided ({numbers((breach.k for breach in rule.undecided), SHOWN)})")
    return f": holds but for {' and '.join(kinds)}"


def numbers(values: Iterable[int], most: int | None = None) -> str:
    """Integers with commas between; if there are more than `most`, the first of them and how many there are."""
    return listed(map(str, values), most)


def listed(items: Iterable[str], most: int | None = None, separator: str = ", ", elsewhere: str = "") -> str:
    """The items; if there are more than `most`, the first of them, how many there are, and what shows all of them."""
    shown = list(items)
    if most is None or len(shown) <= most:
        return separator.join(shown)
    return separator.join(shown[:most]) + f" … {len(shown)} in all{elsewhere}"


def unreadable_text(explanation: Explanation) -> str:
    """How many answers of each table were no integer."""
    return ", ".join(f"{count:,} of {explanation.fidelity[name].n:,} {'' if name == 'pairs' else name + ' '}pairs"
                     for name, count in explanation.unreadable.items())


def shown_value(prediction: int | None) -> str:
    return "unreadable" if prediction is None else f"{prediction:,}"


def class_rows(explanation: Explanation, most: int | None = None) -> list[tuple[str, ...]]:
    """A row for each class, by CLASS_COLUMNS, with at most that many members."""
    return [(str(group.label), shown_value(readable(group.prediction)), f"{group.shares[group.prediction]:.2f}",
             str(group.values), f"{group.entropy:.2f}", numbers(group.members, most)) for group in explanation.classes]


def largest_tested(explanation: Explanation) -> int:
    """The largest k that can be in D."""
    return min(TESTED_GCDS, explanation.maximum or TESTED_GCDS)


def known_sets(explanation: Explanation) -> list[tuple[int, list[int]]] | None:
    """D (or E) as a product: for each learned prime its powers, from 1 on. None if it is no such product, or was not tested
    for all of it."""
    labels = set(explanation.labels)
    if labels != products(explanation.prime_powers, largest_tested(explanation)):
        return None
    return [(p, [1, *(q for q in sorted(labels) if (prime_power(q) or (0, 0))[0] == p)]) for p in explanation.prime_powers]


def members(explanation: Explanation, labels: Iterable[int], most: int | None = None) -> str:
    """Elements of D or E with commas between; undecided ones have a question mark."""
    undecided = set(explanation.undecided) if explanation.form.set_name == "D" else set()
    return listed((f"{k}?" if k in undecided else str(k) for k in labels), most)


def known_elements(explanation: Explanation, mark: Callable[[str, bool], str], most: int | None = None) -> str:
    """D (or E): as a product of sets of prime powers if it is one, each as `mark(text, grokked)` has it, else
    every element."""
    sets, largest = known_sets(explanation), largest_tested(explanation)
    if not explanation.labels:
        return "empty"
    if sets is None:
        return f"{{{members(explanation, explanation.labels, most)}}}"
    factors = (mark(f"{{{members(explanation, powers)}}}", p in explanation.grokked) for p, powers in sets)
    limit = f" up to {largest}" if prod(explanation.prime_powers.values()) > largest else ""
    return (" × ".join(factors) or "{1}") + limit


def known_count(explanation: Explanation) -> str:
    """How many GCD are correct, and of how many that is undecided."""
    undecided = f", {len(explanation.undecided)} undecided" if explanation.undecided else ""
    return f"{len(explanation.correct)} correct GCD of {len(explanation.shares)}{undecided}"


def undecided_text(explanation: Explanation) -> str:
    """The undecided k, each with the share of its pairs that are right."""
    shown = listed((f"{k} ({100 * explanation.shares[k].get(k, 0.0):.1f} %)" for k in explanation.undecided), SHOWN)
    return (f"in D or not is undecided, as the 95 % interval contains {100 * explanation.threshold:.0f} %: "
            f"{shown}")


def enumeration_text(explanation: Explanation) -> str:
    """What trying all pairs has shown."""
    if explanation.is_proof:
        return f"a proof by enumeration: {explanation.domain} were tried, and none contradicts the rules"
    share = explanation.fidelity["stratified"]
    return (f"{explanation.domain} were tried: the rules predict exactly {share.agree:,} of {share.n:,} answers, "
            f"{exact_percent(share)} %")


def exact_percent(share: Fidelity) -> str:
    """A percentage that is not rounded up to 100."""
    return f"{min(100 * share.value, 99.9999) if share.agree < share.n else 100:.4f}"


def band_mark(band: Band) -> Mark:
    """`yes` the rules hold there, `no` they do not, `wait` that is undecided."""
    return "wait" if band.holds is None else "yes" if band.holds else "no"


def band_share(band: Band) -> str:
    """The fidelity of a band with its interval, or as exact."""
    low, high = band.fidelity.interval
    shown = "all pairs" if band.fidelity.exact else f"{100 * low:.1f}–{100 * high:.1f}"
    return f"{100 * band.fidelity.value:.1f} % [{shown}]"


def describe_config(config: Config) -> str:
    """What is trained, in a line."""
    return (f"{describe_task(config)}, integers up to {config.task.maximum:,}; {examples_in_words(config)}; "
            f"{describe_model(config)}; seed {config.training.seed}")


def headline(config: Config) -> str:
    """The same for a narrow place."""
    return (f"{describe_task(config)}: {examples_in_words(config)}; {short_model(config)}, "
            f"seed {config.training.seed}")


def describe_answers(config: Config) -> str:
    """How what a run reports was answered, if not simply by its weights: under another prior, by averaged weights."""
    ways = [] if config.evaluation.prior == "training" else [f"decided under {prior_in_words(config.evaluation.prior)}"]
    ways += [] if config.training.average is None else ["by averaged weights"]
    return f"answers {' '.join(ways)}" if ways else ""


def describe_model(config: Config) -> str:
    """Family, layers and width: `transformer, 4+4 layers, 512 dimensions`."""
    model = config.model
    one_depth = model.family != "transformer" and model.encoder_layers == model.decoder_layers
    layers = model.decoder_layers if one_depth else f"{model.encoder_layers}+{model.decoder_layers}"
    return f"{model.family}, {layers} layers, {model.hidden_dim or model.decoder_dim} dimensions"


def short_model(config: Config) -> str:
    """`transformer 4+4, d = 512`."""
    model = config.model
    return f"{model.family} {model.encoder_layers}+{model.decoder_layers}, d = {model.decoder_dim}"


def describe_task(config: Config) -> str:
    """`gcd in base 30`; of a task in a file of one's own, the name without the path."""
    return f"{config.task.task.rpartition(':')[2]} in base {config.task.base}"


def examples_in_words(config: Config) -> str:
    """Where the training examples come from: a file, or the distributions that they are drawn from."""
    if config.data.train_file is not None:
        return f"from {config.data.train_file}"
    outcomes = f", {config.data.outcomes_in_words} outcomes" if has_outcomes(config) else ""
    return f"{config.data.operands} operands{outcomes}"


def has_outcomes(config: Config) -> bool:
    """Whether an outcome distribution has a meaning. The code of a task is not run for it: one that draws GCD has it."""
    name = config.task.task
    return config.data.outcomes != "natural" or name in TASKS and TASKS[name].has_gcd


def clock(seconds: float) -> str:
    """1:05 or 2:01:05."""
    whole = int(seconds)
    if whole >= 3600:
        return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"
    return f"{whole // 60}:{whole % 60:02d}"


def timeline_sentences(history: Timeline, since: int = 0) -> list[tuple[int, str, bool]]:
    """(epoch, sentence, whether D changed) for the steps from an epoch on and the periods between them without change."""
    changes = [(step.epoch, step.sentence(), True) for step in history.steps if step.epoch >= since]
    periods = [(first, f"epochs {first} to {last}: nothing new", False)
               for first, last in history.stagnation if last > since]
    return sorted(changes + periods)
