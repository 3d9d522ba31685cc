"""The sections of a configuration: every field with its type, its bounds and one sentence that is also its `--help`.

A section checks what its own fields must agree on. It knows no task, distribution or model; what only they can check (does M
fit the task, does the task have outcomes) is checked where they are built.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from gcdformer.config.prior import parse_prior

LARGEST_INTEGER = 2**62
LARGEST_BASE = 20_000
TESTED_GCDS = 100
LEAST_PAIRS = 30
"""Pairs that a k needs to be judged: with fewer nobody can say whether it is in D."""
DEFAULT_MAX_GCD = 100

Value = bool | int | float | str | None
"""What a field of a section may hold."""
OperandDistribution = Literal["uniform", "log-uniform"]
OutcomeDistribution = Literal[
    "natural", "uniform", "inverse-sqrt", "log-uniform", "inverse-1.5", "power", "mixture", "weights"
]
Family = Literal["transformer", "lstm", "gru"]
WITH_HEADS = ("transformer",)
"""Families that attend, and so have heads and positions; a family that is neither here nor in RECURRENT has neither."""
RECURRENT = ("lstm", "gru")
"""Families whose encoder's final state starts the decoder."""
FILE_TASK = "file"
OF_A_DISTRIBUTION: dict[str, None] = dict.fromkeys((
    "alpha", "final_alpha", "focus", "focus_share", "mixture_share", "final_mixture_share", "weights_file"))
"""Parameters of an outcome distribution, which another distribution does not take over."""
SHIFTS = ("final_alpha", "final_mixture_share", "focus")
"""Those that make a distribution change during training."""
FILE_DISTRIBUTIONS: dict[str, str | float | None] = {
    "operands": "uniform", "outcomes": "natural", "max_gcd": None, **OF_A_DISTRIBUTION, "budget": None, "repeat_share": 0.0,
    "repeat_size": None}
"""What the distributions are set to where examples come from a file."""
RENAMED = {"engine": "backend"}
"""Leaves that had another name in earlier versions, and that run folders of theirs still have."""
Schedule = Literal["constant", "inverse-sqrt", "cosine"]
Optimizer = Literal["adam", "muon"]
TRACKERS = ("tensorboard", "wandb")


class Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class TaskSection(Section):
    """What is learned, and how integers are written."""

    task: str = Field("gcd", description="gcd, comparison, division, addition, multiplication, simplification; "
                      "path/to/file.py:Name for a task of your own; or file, for what only train_file and test_file know")
    base: int = Field(1000, ge=2, le=LARGEST_BASE, description="base B in which integers are written")
    maximum: int = Field(1_000_000, ge=2, le=2**53, description="largest operand M",
                         json_schema_extra={"flag": "max"})
    framing: Literal["none", "published"] = Field(
        "none", description="tokens around a question: none, or one in front and the end token behind as in the paper's "
        "published code")


class DataSection(Section):
    """How examples are drawn."""

    operands: OperandDistribution = Field("log-uniform", description="distribution of the operands a and b")
    outcomes: OutcomeDistribution = Field("natural", description="distribution of the GCD k")
    max_gcd: int | None = Field(None, ge=1, le=2**53, description="largest GCD K drawn by an outcome distribution "
                                "(100 or M, whichever is smaller, if not given)")
    alpha: float | None = Field(None, ge=-10, le=10,
                                description="exponent of --outcomes power: P(k) ~ k^-alpha")
    final_alpha: float | None = Field(None, ge=-10, le=10, description="exponent that the distribution of the GCD shifts "
                                      "to, step by step until the horizon of a cosine schedule (no shift if not given)")
    focus: str | None = Field(None, description="integers with commas between, of which a share of the GCD are multiples, "
                              "each as often as the others: the first six from the start, all of them from half the "
                              "horizon of a cosine schedule on, from three quarters on the share falls to 0; those above "
                              "the largest GCD drawn are left out")
    focus_share: float | None = Field(None, gt=0, lt=1, description="that share of the examples (0.5 if not given); with "
                                      "--outcomes mixture, of those whose GCD is drawn first")
    mixture_share: float | None = Field(None, ge=0, le=1, description="share of uniform outcomes in "
                                        "--outcomes mixture (0.05 if not given)")
    final_mixture_share: float | None = Field(None, ge=0, le=1, description="share that a mixture shifts to, example by "
                                              "example until the horizon of a cosine schedule (no shift if not given)")
    weights_file: str | None = Field(None, min_length=1, description="file of --outcomes weights: lines k,weight with "
                                     "P(k) ~ weight; a k that is not listed is never drawn")
    budget: int | None = Field(None, ge=1, le=2**53, description="number of distinct training examples; after "
                               "them they come again, reshuffled (no bound if not given)")
    repeat_share: float = Field(0.0, ge=0, lt=1, description="share of examples drawn from a small set "
                                "that is repeated throughout (two-set training)")
    repeat_size: int | None = Field(None, ge=1, le=5_000_000, description="size of that small set "
                                    "(50,000 if not given)")
    train_file: str | None = Field(None, min_length=1, description="file of training examples, in a new order at each pass, "
                                   "instead of drawn ones: .csv, .parquet, any other name is Int2Int text")
    data_types: str | None = Field(None, min_length=1, description="types of a question and its answer in the files of "
                                   "--task file, as in Int2Int: 'int[5]:int', 'int[2]:range(0,100)'")

    @property
    def outcomes_in_words(self) -> str:
        """The distribution of the GCD as a person reads it, with what it shifts to and whether some have more of it."""
        shift = "" if self.final_alpha is None else f" to k^-{self.final_alpha:g}"
        if self.final_mixture_share is not None:
            shift = f" to {100 * self.final_mixture_share:g} %"
        name = self.outcomes if self.weights_file is None else f"{self.weights_file.split('/')[-1]}-weighted"
        return ("focused " if self.focus else "") + name + shift

    def largest_gcd(self, maximum: int) -> int:
        """The largest GCD that an outcome distribution draws."""
        return min(DEFAULT_MAX_GCD, maximum) if self.max_gcd is None else self.max_gcd

    @property
    def shifts(self) -> bool:
        """Whether the distribution changes during training."""
        return any(getattr(self, name) is not None for name in SHIFTS)

    @property
    def focused(self) -> tuple[int, ...]:
        """What is in focus, in its order."""
        return tuple(map(int, self.focus.split(","))) if self.focus else ()

    @model_validator(mode="after")
    def distributions_agree(self) -> Self:
        if self.train_file is not None:
            for name, plain in FILE_DISTRIBUTIONS.items():
                if getattr(self, name) != plain:
                    raise ValueError(f"{name} has no meaning with train_file: the file says which examples there are")
        for outcomes, name in (("power", "alpha"), ("weights", "weights_file")):
            if (self.outcomes == outcomes) != (getattr(self, name) is not None):
                raise ValueError(f"outcomes '{outcomes}' and {name} go together: give both or neither")
        if self.focus is not None and not all(n.isdecimal() and int(n) > 1 for n in self.focus.split(",")):
            raise ValueError(f"focus takes integers above 1 with commas between, as in 11,13,17, not '{self.focus}'")
        if self.final_alpha is not None and self.outcomes in ("natural", "mixture", "weights"):
            raise ValueError(f"final_alpha needs outcomes with P(k) ~ k^-alpha, not '{self.outcomes}'")
        if self.focus is not None and self.outcomes in ("natural", "weights"):
            raise ValueError(f"focus needs outcomes with P(k) ~ k^-alpha, or a mixture, not '{self.outcomes}'")
        if self.focus_share is not None and self.focus is None:
            raise ValueError("focus_share needs a focus")
        for name in ("mixture_share", "final_mixture_share"):
            if getattr(self, name) is not None and self.outcomes != "mixture":
                raise ValueError(f"{name} needs outcomes 'mixture', not '{self.outcomes}'")
        if self.max_gcd is not None and self.outcomes in ("natural", "weights"):
            raise ValueError(f"max_gcd has no meaning with outcomes '{self.outcomes}': leave it out, or choose others")
        if self.repeat_size is not None and self.repeat_share == 0:
            raise ValueError("repeat_size needs a repeat_share above 0")
        return self


class ModelSection(Section):
    """The model: an encoder and a decoder, each with its own depth, width and heads."""

    family: Family = Field("transformer", description="kind of model")
    encoder_layers: int = Field(1, ge=1, le=256, description="layers of the encoder")
    decoder_layers: int = Field(1, ge=1, le=256, description="layers of the decoder")
    encoder_dim: int = Field(64, ge=1, le=65_536, description="width of the encoder")
    decoder_dim: int = Field(64, ge=1, le=65_536, description="width of the decoder")
    encoder_heads: int = Field(4, ge=0, le=65_536, description="attention heads of the encoder (0 for lstm, gru)")
    decoder_heads: int = Field(4, ge=0, le=65_536, description="attention heads of the decoder (0 for lstm, gru)")
    hidden_dim: int | None = Field(None, ge=1, le=65_536, description="hidden width of lstm and gru "
                                   "(the encoder's width if not given)")
    positions: int | None = Field(None, ge=1, le=1_000_000, description="learned positions on each side "
                                  "(as many as the task needs if not given; the paper has 4096)")
    cross_query: Literal["state", "input"] = Field(
        "state", description="queries of the decoder's cross-attention: its state after self-attention, "
        "or the layer's input as in the paper's published code")
    norm_epsilon: float = Field(1e-5, ge=1e-12, le=0.1, description="what layer norm adds to the variance (the paper's "
                                "published code: 1e-12)")

    @model_validator(mode="after")
    def sizes_agree(self) -> Self:
        if self.family not in RECURRENT and self.hidden_dim is not None:
            raise ValueError(f"hidden_dim is for lstm and gru, not for family '{self.family}'")
        if self.family in WITH_HEADS:
            for side in ("encoder", "decoder"):
                heads, dim = getattr(self, f"{side}_heads"), getattr(self, f"{side}_dim")
                if heads < 1 or dim % heads:
                    raise ValueError(f"{side}_heads must divide {side}_dim: {heads} does not divide {dim}")
            return self
        if self.family in RECURRENT and self.encoder_layers != self.decoder_layers:
            raise ValueError(f"encoder_layers and decoder_layers must be equal for family '{self.family}': "
                             "the encoder's final state starts the decoder")
        if self.encoder_heads or self.decoder_heads:
            raise ValueError(f"encoder_heads and decoder_heads must be 0 for family '{self.family}'")
        if self.positions is not None or self.cross_query != "state":
            raise ValueError(f"positions and cross_query have no meaning for family '{self.family}'")
        return self


class TrainingSection(Section):
    """The optimiser, its schedule, the batches."""

    optimizer: Optimizer = Field("adam", description="adam, or muon for the maps inside the layers of a transformer and "
                                 "adam for the rest")
    lr: float = Field(2e-3, gt=0, le=10, description="learning rate, at its highest")
    schedule: Schedule = Field("cosine", description="course of the learning rate over the steps")
    warmup: int = Field(500, ge=0, le=2**53, description="steps over which the learning rate rises from 0")
    horizon: int | None = Field(None, ge=1, le=2**53, description="step at which a cosine schedule ends (fixed once "
                                "from max_epochs, or from max_minutes and measured speed, if not given)")
    final_lr_share: float | None = Field(None, ge=0, le=1, description="share of lr at the horizon of a "
                                         "cosine schedule (0.02 if not given)")
    beta1: float = Field(0.9, ge=0, lt=1, description="Adam's decay of the gradient's mean")
    beta2: float = Field(0.999, ge=0, lt=1, description="Adam's decay of the gradient's square")
    epsilon: float = Field(1e-8, gt=0, le=1, description="Adam's epsilon")
    weight_decay: float = Field(0.0, ge=0, le=1, description="decoupled weight decay (AdamW) if above 0")
    average: float | None = Field(None, gt=0, lt=1, description="decay per step of an exponential average of the weights, "
                                  "which is then what is evaluated, such as 0.999 (no average if not given)")
    clip: float = Field(5.0, ge=0, description="largest norm of the gradient (0: no clipping)")
    batch_size: int = Field(256, ge=1, le=1_000_000, description="examples in a batch")
    epoch_size: int = Field(300_000, ge=1, le=2**53, description="training examples between two evaluations, "
                            "rounded up to whole batches")
    precision: Literal["float32", "bf16"] = Field("float32", description="bf16: autocast matrix products")
    seed: int = Field(0, ge=0, lt=2**63, description="seed of weights, examples and test sets")
    init_from: str | None = Field(None, min_length=1, description="run folder whose last weights a new run starts from")

    @model_validator(mode="after")
    def schedule_agrees(self) -> Self:
        if self.schedule != "cosine":
            for name in ("horizon", "final_lr_share"):
                if getattr(self, name) is not None:
                    raise ValueError(f"{name} needs schedule 'cosine', not '{self.schedule}'")
        if self.schedule == "inverse-sqrt" and self.warmup < 1:
            raise ValueError("warmup must be at least 1 with schedule 'inverse-sqrt'")
        if self.horizon is not None and self.horizon <= self.warmup:
            raise ValueError(f"horizon must be above warmup ({self.warmup}): {self.horizon} is not")
        return self

    @property
    def steps_per_epoch(self) -> int:
        return -(-self.epoch_size // self.batch_size)


class EvaluationSection(Section):
    """The test sets and when a GCD counts as correct."""

    test_size: int = Field(100_000, ge=100, le=100_000_000, description="pairs in each test set that is drawn")
    test_file: str | None = Field(None, min_length=1, description="file whose rows, all of them, are the test set "
                                  "instead of drawn ones (formats as for train_file)")
    fresh_tests: bool = Field(False, description="draw new test sets at each epoch, as the paper does")
    threshold: float = Field(0.9, gt=0.5, le=1, description="share of the pairs with GCD k that must be "
                             "predicted k for k to be correct")
    prior: Annotated[str, BeforeValidator(parse_prior)] = Field(
        "training", description="distribution of the GCD under which answers are decided: training, natural, uniform, or "
        "the exponent ALPHA of k^-ALPHA")

    @model_validator(mode="after")
    def tests_agree(self) -> Self:
        if self.test_file is not None and self.fresh_tests:
            raise ValueError("fresh_tests has no meaning with test_file: the file is the same at each epoch")
        return self


class LimitsSection(Section):
    """When training stops. Not part of a run's identity: raising a limit extends the run."""

    max_epochs: int | None = Field(None, ge=1, le=2**53, description="stop after this many epochs")
    max_minutes: float | None = Field(None, gt=0, description="stop after the last epoch that fits into "
                                      "this many minutes")
    stop_at_correct: int | None = Field(None, ge=1, le=TESTED_GCDS,
                                        description="stop when this many GCD are correct")


class MachineSection(Section):
    """Where it runs and which checkpoints stay. Not part of a run's identity."""

    @model_validator(mode="before")
    @classmethod
    def renamed(cls, fields: Any) -> Any:
        """Configurations of earlier versions call the backend `engine`."""
        if isinstance(fields, dict):
            return {RENAMED.get(name, name): value for name, value in fields.items()}
        return fields

    backend: Literal["auto", "autograd"] = Field("auto", description="auto: the packed training step where there is one (a "
                                                "transformer in float32 on a CPU); autograd: torch's own everywhere")

    device: str = Field("auto", pattern=r"^(auto|cpu|mps|cuda(:\d+)?)$",
                        description="auto, cpu, cuda, cuda:N or mps")
    threads: int | None = Field(None, ge=1, le=1024, description="CPU threads (all cores if not given)")
    accumulate: int = Field(1, ge=1, le=1_000_000, description="micro-batches whose gradients make up a batch, on each "
                            "rank: a large batch in little memory")
    checkpoint_minutes: float = Field(10.0, gt=0, description="save within an epoch after this many minutes")
    keep_checkpoints: int = Field(2, ge=1, le=2**53, description="newest checkpoints kept beside the best and the certified")
    trackers: str = Field("none", pattern=rf"^(none|({'|'.join(TRACKERS)})(,({'|'.join(TRACKERS)}))*)$",
                          description="copies of the metrics, in the run's folder: tensorboard, wandb (offline unless the "
                          "variable WANDB_MODE says otherwise), both with a comma between, or none")
