"""`gcdformer reproduce`: the paper's tables, published beside measured; keeps the ledger.

Showing never trains; with `--run` it trains what is missing first. It does not know how a run is trained:
that is in `reproduce_runs`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcdformer.config import config_leaves
from gcdformer.display.progress import progress
from gcdformer.errors import UserError
from gcdformer.options import (
    add_config_flags,
    add_json,
    add_quiet,
    given,
    number,
    parse_integer,
    print_json,
    run_path,
    runs_folder,
)
from gcdformer.paper import CLAIM_EPOCHS, CLAIMS, TABLES, find_table
from gcdformer.paper.table import REASONS, Experiment, Note, Table
from gcdformer.presets import VERSIONS, preset

if TYPE_CHECKING:
    from gcdformer.paper.entry import Entry
    from gcdformer.paper.reproduce import Recipe
    from gcdformer.sweeps.plan import Planned

FREE = ["backend", "device", *(leaf.name for leaf in config_leaves() if leaf.section in ("training", "evaluation")
                              and leaf.name not in ("seed", "init_from", "horizon"))]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("table", nargs="*", metavar="TABLE", help=f"one of {', '.join(TABLES)}; or its number in the paper, "
                        f"as 2, 'Table 2' or figure-1; or {CLAIMS} (default: list them)")
    parser.add_argument("--run", dest="train", action="store_true", help="train what is missing, then show; without it "
                        "nothing is trained. A run in the ledger counts whatever its budget, unless --minutes, --max-epochs "
                        "or a field of the recipe is given: then only one that has these")
    parser.add_argument("--only", metavar="NAME,NAME", help="with claims: only these; with a table: only "
                        "the experiments that are named so, or whose names contain this (--dry-run lists the names)")
    parser.add_argument("--bases", metavar="B,B", help="only these bases")
    parser.add_argument("--seeds", type=lambda text: parse_integer(text, "seeds", 1, 1000), default=1, metavar="N",
                        help="runs of each experiment; the best counts, as in the paper; for claims each seed adds a pair "
                        "of runs instead (default: 1)")
    parser.add_argument("--minutes", type=number, metavar="T", help="minutes of a run (default: the preset's)")
    parser.add_argument("--max-epochs", type=lambda text: parse_integer(text, "max-epochs", 1, 10**6), metavar="N",
                        help=f"epochs of a run, in place of minutes (default for claims: {CLAIM_EPOCHS}, so that both runs "
                        "of a pair see the same examples)")
    parser.add_argument("--preset", choices=list(VERSIONS), help="recipe of the runs (default: fast)")
    parser.add_argument("--out", type=run_path, default=runs_folder() / "reproduce", metavar="DIR",
                        help="folder of the runs (default: reproduce in $GCDFORMER_RUNS, or in runs)")
    parser.add_argument("--jobs", type=lambda text: parse_integer(text, "jobs", 1, 1000), metavar="N",
                        help="runs at a time, one thread each (default: one a core)")
    parser.add_argument("--dry-run", action="store_true", help="name the runs that --run would train and what they take, "
                        "and train nothing")
    parser.add_argument("--again", action="store_true", help="with --run or --dry-run: train what was measured before too, "
                        "and show that instead")
    parser.add_argument("--show", action="store_true", help="print what is measured, and train nothing: the default")
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    parser.add_argument("--html", nargs="?", type=Path, const=Path("reproduction.html"), metavar="FILE",
                        help="write an HTML page (default name: reproduction.html)")
    parser.add_argument("--figures", type=Path, metavar="DIR", help="write learning curves as SVG and PNG")
    parser.add_argument("--record", nargs="+", type=run_path, metavar="RUN", help="add run folders to the ledger")
    parser.add_argument("--as", dest="stands_for", metavar="EXPERIMENT",
                        help="with --record: the experiment that the run stands for, if its recipe is another")
    parser.add_argument("--why", metavar="REASON:TEXT",
                        help=f"with --record: why it differs from the paper; a reason is one of {', '.join(REASONS)}")
    parser.add_argument("--render", type=Path, metavar="FILE", help="write the page of all tables from the ledger")
    parser.add_argument("--ledger", type=Path, metavar="DIR", help="another ledger than the package's own")
    add_quiet(parser)
    add_json(parser)
    add_config_flags(parser, only=FREE, defaults=preset("fast"), config_file=False)


def run(args: argparse.Namespace) -> int:
    args.table = " ".join(args.table) or None
    check(args)
    if args.record or args.render:
        return keep_ledger(args)
    if args.table is None:
        return list_tables(args)
    own_recipe, ignored = bool(args.minutes or args.max_epochs or given(args)), about_training(args)
    if args.table == CLAIMS:
        from gcdformer.commands.reproduce_claims import epochs_of_claims, table_of_claims
        from gcdformer.commands.reproduce_claims import show_claims as show
        table = table_of_claims(args)
        args.max_epochs = epochs_of_claims(args)
    else:
        table, show = find_table(args.table), show_table
    code = 0
    if (args.train or args.dry_run) and not args.show:
        with progress("reading what was measured", quiet=args.quiet):
            from gcdformer.commands.reproduce_runs import find_measured, show_plan, train_missing
            planned, recipe = plan_table(args, table)
            find_measured(args, table, planned, recipe, exactly=own_recipe)
        if args.dry_run:
            return show_plan(args, planned)
        code = train_missing(args, planned, recipe)
    elif ignored and not args.show:
        print(f"gcdformer: nothing is trained without --run, so {', '.join(ignored)} changed nothing", file=sys.stderr)
    show(args, table)
    return code


def about_training(args: argparse.Namespace) -> list[str]:
    """The flags that were given and have a meaning in training only."""
    flags = {"--minutes": args.minutes, "--max-epochs": args.max_epochs, "--seeds": args.seeds > 1, "--jobs": args.jobs}
    return [name for name, value in flags.items() if value] + [f"--{name.replace('_', '-')}" for name in given(args)]


def check(args: argparse.Namespace) -> None:
    """Flags that clash."""
    if args.table is not None and (args.record or args.render):
        raise UserError("record and render are about the whole ledger: leave the table out")
    if (args.stands_for or args.why) and not args.record:
        raise UserError("--as and --why need --record RUN")
    if args.stands_for and not args.why:
        raise UserError("why: a run recorded by --as departs from the experiment: give --why REASON:TEXT")
    if args.minutes is not None and args.max_epochs is not None:
        raise UserError("give --minutes or --max-epochs, not both")
    if args.minutes is not None and args.minutes <= 0:
        raise UserError(f"minutes: above 0, got {args.minutes:g}")
    if args.only and args.table is None:
        raise UserError("--only names claims or experiments of a table: give claims or a table")
    if args.figures and args.table == CLAIMS:
        raise UserError("figures: claims have none; the figures of the paper are tables")
    if args.table is None and (args.bases or args.train or args.dry_run or args.show or args.again):
        raise UserError("--bases, --run, --dry-run, --again and --show need a table")
    if args.show and (args.train or args.again):
        raise UserError(f"{'--run' if args.train else '--again'} trains and --show does not: give one of them")
    if args.again and not (args.train or args.dry_run):
        raise UserError("--again says what --run trains: give --run or --dry-run with it")


def chosen_bases(args: argparse.Namespace, table: Table) -> list[int] | None:
    if args.bases is None:
        return None
    bases = [parse_integer(word.strip(), "bases", 2, 10**6) for word in args.bases.split(",")]
    for base in bases:
        if base not in table.bases:
            raise UserError(f"bases: {base} is not in {table.name}: it has {', '.join(map(str, table.bases))}")
    return bases


def chosen_experiments(args: argparse.Namespace, table: Table) -> list[Experiment]:
    """The experiments of the table that were asked for; for claims, `only` has chosen already."""
    found = table.experiments(chosen_bases(args, table))
    if args.only is None or args.table == CLAIMS:
        return found
    chosen: list[Experiment] = []
    for word in (word.strip() for word in args.only.split(",")):
        fits = [one for one in found if word == one.name] or [one for one in found if word and word in one.name]
        if not fits:
            raise UserError(f"only: no experiment of {table.name} has '{word}' in its name; one is named {found[0].name}")
        chosen += fits
    return list(dict.fromkeys(chosen))


def plan_table(args: argparse.Namespace, table: Table) -> tuple[list[Planned], Recipe]:
    """The runs that the table needs, and how each stands."""
    from gcdformer.paper.reproduce import Recipe, make_plan, make_trials
    name = args.preset or "fast"
    minutes = args.minutes if args.minutes or args.max_epochs else preset(name).limits.max_minutes
    recipe = Recipe(name, minutes, args.max_epochs, given(args))
    trials = make_trials(chosen_experiments(args, table), recipe, range(args.seeds), table)
    return make_plan(trials, recipe, args.out), recipe


def known_entries(args: argparse.Namespace) -> list[Entry]:
    """The ledger, and the runs under --out; of a run that is in both what was recorded, unless it was trained again."""
    from gcdformer.paper.ledger import ledger_entries
    found = {entry.name: entry for entry in ledger_entries(args.ledger)}
    if args.out.is_dir():
        from gcdformer.paper.reproduce import finished_runs
        found |= {entry.name: entry for entry in finished_runs(args.out) if args.again or entry.name not in found}
    return list(found.values())


def show_table(args: argparse.Namespace, table: Table) -> None:
    from gcdformer.commands.reproduce_view import tell_table
    from gcdformer.paper.compare import count_tables, reproduction_tables, run_facts
    with progress("comparing with the paper", quiet=args.quiet):
        entries = known_entries(args)
        tables = reproduction_tables(entries, names=[table.name], bases=chosen_bases(args, table), preset=args.preset,
                                     only=chosen_experiments(args, table) if args.only else None)
        used = [run_facts(entry) for entry in entries if entry.name in tables[0]["runs"]]
        write_extras(args, tables, used, [])
    if args.json:
        counts = count_tables(entries, args.preset)
        one = next(one for one in counts["tables"] if one["name"] == table.name)
        print_json({**counts, "tables": [one], "table": tables[0], "runs": used})
    else:
        tell_table(tables[0], used, as_markdown=args.markdown)


def write_extras(args: argparse.Namespace, tables: list[dict[str, Any]], used: list[dict[str, Any]],
                 claims: list[dict[str, Any]]) -> None:
    if args.html:
        from gcdformer.report.reproduction import write_reproduction
        write_reproduction(args.html, tables, used, claims)
        print(f"page    {args.html}", file=sys.stderr)
    if args.figures:
        from gcdformer.report.reproduction import write_curves
        for path in write_curves(args.figures, tables):
            print(f"figure  {path}", file=sys.stderr)


def list_tables(args: argparse.Namespace) -> int:
    from gcdformer.commands.reproduce_view import tell_counts
    from gcdformer.paper.claims import claim_verdicts
    from gcdformer.paper.compare import count_tables, reproduction_tables, run_facts
    with progress("comparing with the paper", quiet=args.quiet):
        entries = known_entries(args)
        claims = claim_verdicts(entries, preset=args.preset)
        counts = count_tables(entries, args.preset)
        if args.html or args.figures:
            write_extras(args, reproduction_tables(entries), [run_facts(entry) for entry in entries], claims)
        if args.markdown:
            from gcdformer.paper.page import render
            page = render(entries)
    if args.markdown:
        print(page)
        return 0
    if args.json:
        print_json({**counts, "claims": claims})
    else:
        tell_counts(counts, claims)
    return 0


def keep_ledger(args: argparse.Namespace) -> int:
    """Record runs, then render the page."""
    from gcdformer.paper.ledger import ledger_entries, ledger_folder
    if args.record:
        from gcdformer.paper.reproduce import measure_run
        why = parse_why(args.why)
        folder = args.ledger or ledger_folder()
        for path in args.record:
            with progress(f"reading {path}", quiet=args.quiet):
                entry = measure_run(path, preset=args.preset or "fast", stands_for=args.stands_for, why=why)
            written = entry.write(folder)
            print(f"recorded {written} ({written.stat().st_size / 1000:.1f} KB): {', '.join(entry.experiments)}")
    if args.render:
        from gcdformer.paper.page import render
        from gcdformer.runs.files import replace_file
        with progress("comparing with the paper", quiet=args.quiet):
            page = render(ledger_entries(args.ledger))
        replace_file(args.render, page.encode())
        print(f"rendered {args.render}")
    return 0


def parse_why(text: str | None) -> Note | None:
    """REASON:TEXT as a typed reason."""
    if text is None:
        return None
    name, colon, words = text.partition(":")
    for reason in REASONS:
        if reason == name.strip() and colon and words.strip():
            return Note(reason, words.strip())
    raise UserError(f"why: REASON:TEXT with a reason of {', '.join(REASONS)}, got '{text}'")
