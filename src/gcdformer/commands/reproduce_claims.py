"""`gcdformer reproduce claims`: the paper's claims, each with a verdict and its evidence."""

from __future__ import annotations

import argparse

from gcdformer.commands.reproduce import chosen_bases, known_entries, write_extras
from gcdformer.commands.reproduce_view import tell_claims
from gcdformer.display.progress import progress
from gcdformer.options import print_json
from gcdformer.paper import CLAIM_EPOCHS
from gcdformer.paper.claims import Claim, claim_verdicts, claims_table, find_claims
from gcdformer.paper.compare import run_facts
from gcdformer.paper.table import Table


def chosen_claims(args: argparse.Namespace) -> list[Claim]:
    return find_claims(None if args.only is None else [word.strip() for word in args.only.split(",")])


def table_of_claims(args: argparse.Namespace) -> Table:
    """What has to be trained for the claims that were chosen."""
    return claims_table(chosen_claims(args))


def epochs_of_claims(args: argparse.Namespace) -> int | None:
    """Epochs of a run if no budget is given; the published recipe, which needs hundreds, has no such default."""
    if args.minutes is not None or args.max_epochs is not None or args.preset == "paper":
        return None if args.max_epochs is None else int(args.max_epochs)
    return CLAIM_EPOCHS


def show_claims(args: argparse.Namespace, table: Table) -> None:
    with progress("judging the claims", quiet=args.quiet):
        entries = known_entries(args)
        verdicts = claim_verdicts(entries, [one.name for one in chosen_claims(args)], preset=args.preset,
                                  bases=chosen_bases(args, table))
        names = {name for verdict in verdicts for one in verdict["evidence"] for name in one["runs"]}
        used = [run_facts(entry) for entry in entries if entry.name in names]
        write_extras(args, [], used, verdicts)
    if args.json:
        print_json({"claims": verdicts, "runs": used})
    else:
        tell_claims(verdicts, used, as_markdown=args.markdown)
