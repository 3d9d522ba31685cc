"""A mechanism in words, in the terminal and as a section of a page. Its figures are in mechanism_figures.py."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from rich.color import Color, blend_rgb
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gcdformer.config import checked_prior, prior_in_words
from gcdformer.display.html import framed
from gcdformer.display.style import colour
from gcdformer.mechanism.result import Best, Mechanism, Prime, Whole
from gcdformer.mechanism.verdict import LOCATED, NOT_FOUND, SPREAD

CARRIES = 0.5
"""Share from which on a single head is said to carry a prime."""
MATTERS = 0.2
"""Share from which on an answer is said to depend on a digit."""
FLAG = 0.8
"""Share of what residues explain from which on divisibility alone is said to explain most of it."""
VERDICT_STYLES = {LOCATED: "bold green", SPREAD: "bold cyan", NOT_FOUND: "bold red"}
RECURRENT = ("In a recurrent model the final state is all that the decoder knows. A swap there exchanges the whole "
             "question, so its share is no finding; the size of the subspace is.")


def sentences(mechanism: Mechanism) -> list[str]:
    """What was found, every sentence from the figures."""
    prior = prior_in_words(checked_prior(mechanism.prior))
    under = [] if mechanism.prior == "training" else [f"Answers are decided under {prior}."]
    said = [*under, *reading_words(mechanism), *carrying_words(mechanism)]
    said += [f"{prime.p} is not found: {prime.why}." for prime in mechanism.primes if prime.verdict == NOT_FOUND]
    said += [f"{p} was not tested: {why}." for p, why in mechanism.skipped.items()]
    said += [*head_words(mechanism), *subspace_words(mechanism), *clock_words(mechanism)]
    return said + [RECURRENT] * (mechanism.family == "recurrent") + control_words(mechanism)


def reading_words(mechanism: Mechanism) -> list[str]:
    """What the answer depends on: the digits whose embedding, exchanged, takes a prime away. It is a sum over several if
    each takes it away alone and none adds it; for 2, if one of them decides each pair: two changes leave a sum even."""
    single: dict[str, list[int]] = {}
    sums = []
    for prime in mechanism.primes:
        takes, adds = ([share or 0.0 for share in way["encoder.embedding"]] for way in (prime.interchange, prime.adding))
        own = [i for i, share in enumerate(takes) if share >= MATTERS]
        names = [mechanism.positions[i].removesuffix(" of a") for i in own]
        if len(own) == 1:
            single.setdefault(names[0], []).append(prime.p)
        elif own and max(adds[i] for i in own) < MATTERS:
            sums.append(f"{prime.p} is a sum over the digits: to exchange one of them takes it away in "
                        f"{span([takes[i] for i in own])} of the pairs and adds it in {span([adds[i] for i in own])}.")
        elif own and sum(takes) >= FLAG and sum(adds) >= FLAG and max(takes) < FLAG:
            parts = [f"the {name} in {percent(takes[i])}" for i, name in zip(own, names, strict=True)]
            sums.append(f"{prime.p} is a sum over the digits, of which one decides each pair: {joined(parts)} of the pairs.")
    read = [f"{joined(primes)} {'are' if primes[1:] else 'is'} read off the {name}." for name, primes in single.items()]
    return read + sums


def carrying_words(mechanism: Mechanism) -> list[str]:
    """The positions that carry a prime at the end of the encoder."""
    places: dict[tuple[int, ...], list[int]] = {}
    for prime in mechanism.primes:
        if prime.verdict != NOT_FOUND:
            places.setdefault(tuple(sorted(prime.whole.positions)), []).append(prime.p)
    if not places or mechanism.family == "recurrent":
        return []
    parts = [f"{joined(primes)} at {joined([f'the {mechanism.positions[i]}' for i in positions])}"
             for positions, primes in places.items()]
    return [f"After the encoder, the divisors of a are carried so: {'; '.join(parts)}."]


def span(shares: Sequence[float]) -> str:
    low, high = min(shares), max(shares)
    return percent(low) if round(100 * low) == round(100 * high) else f"{100 * low:.0f} to {percent(high)}"


def head_words(mechanism: Mechanism) -> list[str]:
    """Which heads carry a prime by themselves."""
    carried: dict[str, list[str]] = {}
    for prime in mechanism.primes:
        for site, heads in prime.heads.items():
            for number, shares in enumerate(heads):
                best = max((share for share in shares if share is not None), default=0.0)
                if best >= CARRIES:
                    place = f"Head {number} of {site.removesuffix('.heads')}".replace(".pattern", "'s pattern")
                    carried.setdefault(place, []).append(f"{prime.p} ({percent(best)})")
    return [f"{place} by itself moves the answer for {joined(primes)}." for place, primes in carried.items()]


def subspace_words(mechanism: Mechanism) -> list[str]:
    if not mechanism.primes:
        return []
    by_rank: dict[int, list[int]] = {}
    for prime in mechanism.primes:
        by_rank.setdefault(prime.rank, []).append(prime.p)
    parts = [f"{joined(primes)} in {rank} dimension{'s' * (rank > 1)}" for rank, primes in sorted(by_rank.items())]
    return [f"Of {mechanism.primes[0].subspace.dimension} dimensions, nine tenths of the swap are done by {joined(parts)}."]


def clock_words(mechanism: Mechanism) -> list[str]:
    """Whether a subspace only says multiple or not, or tells all residues apart. 2 has only two of them."""
    flags: list[str] = []
    clocks: list[str] = []
    for prime in mechanism.primes:
        if prime.p > 2 and prime.verdict != NOT_FOUND:
            known = clocks if prime.clock.flag < FLAG * prime.clock.share else flags
            known.append(f"{prime.p} ({percent(prime.clock.flag)} of {percent(prime.clock.share)})")
    flag = [f"Multiple or not, a flag, explains most of what residues do within the subspace of {joined(flags)}."]
    clock = [f"All residues are told apart, as on a clock, within the subspace of {joined(clocks)}."]
    return flag * bool(flags) + clock * bool(clocks)


def control_words(mechanism: Mechanism) -> list[str]:
    if mechanism.alarms or not mechanism.primes:
        return [f"Alarm: {alarm}." for alarm in mechanism.alarms]
    parts = [f"fresh weights move {percent(max(prime.control for prime in mechanism.primes))} of the answers at most",
             f"neutral swaps leave at least {percent(min(prime.unchanged for prime in mechanism.primes))} as they are"]
    if mechanism.unlearned:
        worst = max(prime.share for prime in mechanism.unlearned)
        parts.append(f"{joined([prime.p for prime in mechanism.unlearned])}, not learned, are followed in {percent(worst)} "
                     "at most")
    permuted = max(prime.subspace.permuted for prime in mechanism.primes)
    parts.append(f"subspaces fitted to permuted answers give {percent(permuted)} of them at most")
    return ["Controls: " + "; ".join(parts) + "."]


def joined(values: Sequence[object]) -> str:
    """2, 3 and 5."""
    texts = [str(value) for value in values]
    return " and ".join([", ".join(texts[:-1]), texts[-1]] if len(texts) > 1 else texts)


def percent(share: float | None) -> str:
    return "–" if share is None else f"{100 * share:.0f} %"


def label(prime: Prime) -> str:
    """The prime, with a star if it does not divide the base."""
    return f"{prime.p}{'' if prime.divides_base else '*'}"


def interval(best: Best) -> str:
    return f"{100 * best.low:.0f}–{100 * best.high:.0f}"


def show_mechanism(console: Console, mechanism: Mechanism, what: str) -> None:
    """The page in the terminal."""
    verdict = (mechanism.verdict, VERDICT_STYLES[mechanism.verdict])
    console.print(Text.assemble((what, "bold"), f"  base {mechanism.base}  ", verdict))
    for text in sentences(mechanism):
        console.print(Text(text, style="bold red" if text.startswith("Alarm") else ""))
    if not mechanism.primes:
        return
    console.print(Text(f"\nvalue exchanged at {last_site(mechanism)}: answers that move as the rules say, %", style="bold"))
    console.print(place_table(mechanism))
    console.print(Text("\nthe best place of each prime, % (* does not divide the base)", style="bold"))
    console.print(prime_table(mechanism.primes))
    if mechanism.through_training:
        console.print(Text("\nthrough training: p added by all digits of a, % (variance that residues explain, %); "
                           "dim: p not in D yet", style="bold"))
        console.print(training_table(mechanism))


def place_table(mechanism: Mechanism) -> Table:
    """Positions by primes at the end of the encoder, as shaded cells."""
    site = last_site(mechanism)
    table = Table(box=None, padding=(0, 1), header_style="dim")
    table.add_column("", no_wrap=True)
    for prime in mechanism.primes:
        table.add_column(label(prime), justify="right", min_width=3)
    wholes = [whole_at(prime, site) for prime in mechanism.primes]
    for title, matrices, together in (
            ("p taken away from a", [prime.interchange for prime in mechanism.primes], [whole.share for whole in wholes]),
            ("p added to a", [prime.adding for prime in mechanism.primes], [whole.adding for whole in wholes])):
        table.add_row(Text(title, style="italic"))
        for position, name in enumerate(mechanism.positions):
            row = [matrix.get(site, [None] * len(mechanism.positions))[position] for matrix in matrices]
            if any(share is not None for share in row):
                table.add_row("  " + name, *map(cell, row))
        table.add_row("  all digits of a", *map(cell, together))
    return table


def last_site(mechanism: Mechanism) -> str:
    """The end of the encoder as far as it has values by position."""
    sites = [site for site in mechanism.sites if site.startswith("encoder.") and not site.startswith("encoder.final")]
    return sites[-1]


def whole_at(prime: Prime, site: str) -> Whole:
    return next(whole for whole in prime.digits if whole.site == site)


def cell(share: float | None) -> Text:
    """A share in percent, on a background as strong as it is."""
    if share is None:
        return Text("·", style="dim")
    if share < 0.05:
        return Text(f"{100 * share:.0f}", style="dim")
    ground = blend_rgb(Color.parse(colour("card")).get_truecolor(), Color.parse(colour("heat-right")).get_truecolor(), share)
    return Text(f"{100 * share:.0f}", style=f"{colour('on-deep' if share > 0.6 else 'ink')} on {ground.hex}")


def prime_table(primes: Sequence[Prime]) -> Table:
    """A row for each prime and each of its higher powers; shares in percent."""
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    for title in ("p", "position", "removes", "adds", "stays", "fresh", "rank", "residues", "verdict"):
        table.add_column(title, justify="left" if title in ("position", "verdict") else "right", no_wrap=True)

    def removes(best: Best) -> str:
        return f"{100 * best.share:.0f} ({interval(best)})"

    for prime in primes:
        residues = f"{100 * prime.clock.share:.0f}"
        table.add_row(label(prime), short(prime.best), removes(prime.best), f"{100 * prime.best.adding:.0f}",
                      f"{100 * prime.unchanged:.0f}", f"{100 * prime.control:.0f}", str(prime.rank), residues,
                      Text(prime.verdict, style=VERDICT_STYLES[prime.verdict]))
        for power in prime.powers:
            table.add_row(str(power.q), short(power.best), removes(power.best), f"{100 * power.best.adding:.0f}",
                          "", "", "", "", power.verdict, style="dim")
    return table


def short(best: Best) -> str:
    return best.name.removesuffix(" of a")


def training_table(mechanism: Mechanism) -> Table:
    """When the place of each prime appeared, beside when the prime entered D."""
    table = Table(box=None, padding=(0, 1), header_style="dim")
    table.add_column("epoch", justify="right")
    for p in mechanism.through_training:
        table.add_column(str(p), justify="right")
    for row in zip(*mechanism.through_training.values(), strict=True):
        cells = [Text(f"{100 * moment.adding:.0f} ({100 * moment.residues:.0f})", style="bold" if moment.learned else "dim")
                 for moment in row]
        table.add_row(str(row[0].epoch), *cells)
    entered = [next((moment.epoch for moment in moments if moment.learned), None)
               for moments in mechanism.through_training.values()]
    table.add_row("in D at", *("–" if epoch is None else str(epoch) for epoch in entered), style="bold")
    return table


def mechanism_section(mechanism: Mechanism) -> str:
    """A section of the report."""
    from gcdformer.display import mechanism_figures as pictures
    from gcdformer.display.figures import to_svg
    said = "".join(f'<li class="{"no" if text.startswith("Alarm") else "yes"}">{escape(text)}</li>'
                   for text in sentences(mechanism))
    heads = ("p", "best position", "site", "takes p away", "adds p", "several add p", "neutral: stays", "fresh weights",
             "rank", "verdict")
    drawn = "".join(f'<figure>{to_svg(figure, title)}</figure><p class="legend">{escape(caption)}</p>'
                    for title, figure, caption in pictures.all_figures(mechanism)) if mechanism.primes else ""
    return f"""<section><h2>Where it is carried</h2><p>Run (a, b), but at one place put in the value from (a', b), where a'
differs from a in divisibility by p and in nothing else that the rules look at. Verdict:
<b>{escape(mechanism.verdict)}</b>.</p>
<ul class="rules">{said}</ul>
<div class="scroll"><table><tr>{"".join(f"<th>{title}</th>" for title in heads)}</tr>
{"".join(map(prime_row, mechanism.primes))}</table></div>
{drawn}<p class="legend">* does not divide the base {mechanism.base}</p></section>"""


def prime_row(prime: Prime) -> str:
    best = prime.best
    cells = (label(prime), best.name, best.site, f"{percent(best.share)} ({interval(best)})", percent(best.adding),
             percent(prime.whole.adding), percent(prime.unchanged), percent(prime.control), prime.rank, prime.verdict)
    return "<tr>" + "".join(f"<td>{escape(str(value))}</td>" for value in cells) + "</tr>"


def notebook_html(mechanism: Mechanism) -> str:
    """What a notebook shows."""
    return framed(mechanism_section(mechanism))
