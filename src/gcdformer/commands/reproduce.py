"""`gcdformer reproduce`: the paper's tables and claims, published beside measured; writes the ledger.

Showing never trains; with `--run` it trains what is missing first. It only reads flags and prints: what a table, a run or a
claim is, and how they look, is in `paper/` and `report/`.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gcdformer import options
from gcdformer.config import config_leaves
from gcdformer.display.progress import progress
from gcdformer.errors import UserError
from gcdformer.options import bounded, given, parse_integer, print_json, run_path
from gcdformer.paper import CLAIM_EPOCHS, CLAIMS, TABLES, find_table, page, record, terminal
from gcdformer.paper.claims import Claim, Verdict, claim_verdicts, claims_table, find_claims
from gcdformer.paper.comparison import ComparedTable, compare_tables, count_tables
from gcdformer.paper.entry import Entry
from gcdformer.paper.ledger import ledger_entries, ledger_folder
from gcdformer.paper.priors import was_asked
from gcdformer.paper.table import REASONS, Experiment, Note, Table
from gcdformer.presets import VERSIONS, preset
from gcdformer.runs.files import replace_file
from gcdformer.runs.priors import scan_priors, write_scan

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
    parser.add_argument("--seeds", type=bounded("seeds", 1, 1000), default=1, metavar="N",
                        help="runs of each experiment; the best counts, as in the paper; for claims each seed adds a pair "
                        "of runs instead (default: 1)")
    parser.add_argument("--minutes", type=options.number, metavar="T", help="minutes of a run (default: the preset's)")
    parser.add_argument("--max-epochs", type=bounded("max-epochs", 1, 10**6), metavar="N",
                        help=f"epochs of a run, in place of minutes (default for claims: {CLAIM_EPOCHS}, so that both runs "
                        "of a pair see the same examples)")
    parser.add_argument("--preset", choices=list(VERSIONS), help="recipe of the runs (default: fast)")
    parser.add_argument("--out", type=run_path, default=options.runs_folder() / "reproduce", metavar="DIR",
                        help="folder of the runs (default: reproduce in $GCDFORMER_RUNS, or in runs)")
    parser.add_argument("--jobs", type=bounded("jobs", 1, 1000), metavar="N",
                        help="runs at a time, one thread each (default: one per core)")
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
    parser.add_argument("--as", dest="experiment", metavar="EXPERIMENT",
                        help="with --record: the experiment to record the run for, if its recipe is another")
    parser.add_argument("--why", metavar="REASON:TEXT",
                        help=f"with --record: why it differs from the paper; a reason is one of {', '.join(REASONS)}")
    parser.add_argument("--render", type=Path, metavar="FILE", help="write the page of all tables from the ledger")
    parser.add_argument("--ledger", type=Path, metavar="DIR", help="another ledger than the package's own")
    options.add_quiet(parser)
    options.add_json(parser)
    options.add_config_flags(parser, only=FREE, defaults=preset("fast"), config_file=False)


def run(args: argparse.Namespace) -> int:
    name = " ".join(args.table)
    check(args, name)
    if args.record or args.render:
        return write_ledger(args)
    if not name:
        return show_list(args)
    only = None if args.only is None else [word.strip() for word in args.only.split(",")]
    claims = find_claims(only) if name == CLAIMS else []
    table = claims_table(claims) if claims else find_table(name)
    bases = chosen_bases(args, table)
    experiments = table.experiments(bases) if claims or only is None else table.named_experiments(only, bases)
    code = 0
    if (args.train or args.dry_run) and not args.show:
        code = measure(args, table, experiments, CLAIM_EPOCHS if claims else None, claims)
        if args.dry_run:
            return code
    elif (ignored := about_training(args)) and not args.show:
        print(f"gcdformer: nothing is trained without --run, so {', '.join(ignored)} changed nothing", file=sys.stderr)
    if claims:
        show_claims(args, claims, bases)
    else:
        show_table(args, table, bases, None if only is None else experiments)
    return code


def about_training(args: argparse.Namespace) -> list[str]:
    """The flags that were given and have a meaning in training only."""
    flags = {"--minutes": args.minutes, "--max-epochs": args.max_epochs, "--seeds": args.seeds > 1, "--jobs": args.jobs}
    return [name for name, value in flags.items() if value] + [f"--{name.replace('_', '-')}" for name in given(args)]


def check(args: argparse.Namespace, name: str) -> None:
    """Flags that clash."""
    if name and (args.record or args.render):
        raise UserError("record and render are about the whole ledger: leave the table out")
    if (args.experiment or args.why) and not args.record:
        raise UserError("--as and --why need --record RUN")
    if args.experiment and not args.why:
        raise UserError("why: a run recorded by --as differs from the experiment: give --why REASON:TEXT")
    if args.minutes is not None and args.max_epochs is not None:
        raise UserError("give --minutes or --max-epochs, not both")
    if args.minutes is not None and args.minutes <= 0:
        raise UserError(f"minutes: above 0, got {args.minutes:g}")
    if args.only and not name:
        raise UserError("--only names claims or experiments of a table: give claims or a table")
    if args.figures and name == CLAIMS:
        raise UserError("figures: claims have none; the figures of the paper are tables")
    if not name and (args.bases or args.train or args.dry_run or args.show or args.again):
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


def measure(args: argparse.Namespace, table: Table, experiments: list[Experiment], epochs: int | None, claims: list[Claim]
            ) -> int:
    """Train what is missing of the table, or show what that would be. `epochs` is the budget if none is given; the published
    recipe, which needs hundreds, has no such default."""
    to_ask = {experiment.name for claim in claims if claim.under_priors for experiment in claim.experiments}

    def usable(entries: list[Entry]) -> list[Entry]:
        return [entry for entry in entries if was_asked(entry) or not to_ask.intersection(entry.experiments)]

    name = args.preset or "fast"
    own_budget = bool(args.minutes or args.max_epochs)
    if own_budget or name == "paper":
        epochs = args.max_epochs
    with progress("reading what was measured", quiet=args.quiet):
        from gcdformer.paper import reproduce
        from gcdformer.sweeps.plan import plan
        minutes = args.minutes if own_budget or epochs else preset(name).limits.max_minutes
        recipe = reproduce.Recipe(name, minutes, epochs, given(args))
        trials = reproduce.make_trials(experiments, recipe, range(args.seeds), table)
        planned = plan(trials, args.out / recipe.folder)
        if not args.again:
            if own_budget or given(args):
                reproduce.mark_recorded(planned, recipe, usable(ledger_entries(args.ledger)))
            else:
                reproduce.mark_measured(planned, recipe, table, usable(ledger_entries(args.ledger)),
                                        usable(known_entries(args)))
    if not args.dry_run:
        code = reproduce.train_missing(planned, recipe, args.jobs, quiet=args.quiet, as_json=args.json or args.markdown)
        asked = [trial for trial in planned if to_ask & reproduce.experiments_of(trial, recipe)]
        for finished in reproduce.not_asked(asked):
            with progress(f"asking {finished.path.name} under many priors", quiet=args.quiet) as advance:
                write_scan(finished, scan_priors(finished, on_step=advance))
        return code
    if args.json:
        print_json(reproduce.plan_json(planned, args.jobs))
    else:
        for trial in planned:
            print(f"{trial.status:13} {trial.path}")
        print(reproduce.plan_text(planned, args.jobs))
    return 0


def known_entries(args: argparse.Namespace) -> list[Entry]:
    """The ledger, and the runs under --out; of a run that is in both what was recorded, unless it was trained again."""
    return record.known_entries(args.ledger, args.out, prefer_runs=args.again)


def show_table(args: argparse.Namespace, table: Table, bases: list[int] | None, only: list[Experiment] | None) -> None:
    with progress("comparing with the paper", quiet=args.quiet):
        entries = known_entries(args)
        (compared,) = compare_tables(entries, names=[table.name], bases=bases, preset=args.preset, only=only)
        used = [entry for entry in entries if entry.name in compared.runs]
        write_extras(args, [compared], used, [])
    if args.json:
        counts = count_tables(entries, args.preset)
        print_json(counts.to_json() | {
            "tables": [own.counts_json() for own in counts.tables if own.table is table], "table": compared.to_json(),
            "runs": [entry.to_json() for entry in used]})
    elif args.markdown:
        print("\n".join([page.table_section(compared), "", *map(page.run_item, used)]))
    else:
        terminal.print_table(compared, used)


def show_claims(args: argparse.Namespace, claims: list[Claim], bases: list[int] | None) -> None:
    with progress("judging the claims", quiet=args.quiet):
        entries = known_entries(args)
        verdicts = claim_verdicts(entries, claims, preset=args.preset, bases=bases)
        names = {run.name for verdict in verdicts for observation in verdict.observations for run in observation.runs}
        used = [entry for entry in entries if entry.name in names]
        write_extras(args, [], used, verdicts)
    if args.json:
        print_json({"claims": [verdict.to_json() for verdict in verdicts], "runs": [entry.to_json() for entry in used]})
    elif args.markdown:
        print("\n".join([page.claims_section(verdicts), "", *map(page.run_item, used)]))
    else:
        terminal.print_claims(verdicts)


def show_list(args: argparse.Namespace) -> int:
    """All tables with how much of them is measured, and how many claims hold."""
    with progress("comparing with the paper", quiet=args.quiet):
        entries = known_entries(args)
        verdicts = claim_verdicts(entries, preset=args.preset)
        counts = count_tables(entries, args.preset)
        if args.html or args.figures:
            write_extras(args, compare_tables(entries), entries, verdicts)
        whole_page = page.render(entries) if args.markdown else ""
    if args.markdown:
        print(whole_page)
    elif args.json:
        print_json(counts.to_json() | {"claims": [verdict.to_json() for verdict in verdicts]})
    else:
        terminal.print_counts(counts, verdicts)
    return 0


def write_extras(args: argparse.Namespace, tables: list[ComparedTable], entries: list[Entry], verdicts: list[Verdict]
                 ) -> None:
    if not (args.html or args.figures):
        return
    from gcdformer.report.reproduction import write_curves, write_reproduction
    if args.html:
        write_reproduction(args.html, tables, entries, verdicts)
        print(f"page    {args.html}", file=sys.stderr)
    for path in write_curves(args.figures, tables) if args.figures else ():
        print(f"figure  {path}", file=sys.stderr)


def write_ledger(args: argparse.Namespace) -> int:
    """Record runs, then render the page."""
    if args.record:
        why = parse_why(args.why)
        for path in args.record:
            with progress(f"reading {path}", quiet=args.quiet):
                entry = record.measure_run(path, preset=args.preset or "fast", experiment=args.experiment, why=why)
            written = entry.write(args.ledger or ledger_folder())
            print(f"recorded {written} ({written.stat().st_size / 1000:.1f} KB): {', '.join(entry.experiments)}")
    if args.render:
        with progress("comparing with the paper", quiet=args.quiet):
            text = page.render(ledger_entries(args.ledger))
        replace_file(args.render, text.encode())
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
