"""Language models, as an administrator has set them up."""

from __future__ import annotations

from collections.abc import Collection

from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q

from agent.llm.guard import AddressRefused, check_url

_NAME = RegexValidator(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", "Use letters, digits, dots, dashes; at most 64.")


class LanguageModel(models.Model):
    """One model behind an address. Its name is what runs are asked for with, and never changes."""

    class Origin(models.TextChoices):
        ADMIN = "admin", "set up here"
        ENVIRONMENT = "environment", "KERNELWRIGHT_LLM_* in the environment"
        VLLM = "vllm", "vLLM, started by this server"

    class Protocol(models.TextChoices):
        AUTO = "auto", "auto: tools where a try showed that it calls them, else rewrite"
        REWRITE = "rewrite", "rewrite: a whole source per turn"
        TOOLS = "tools", "tools: tool calls in a scratch folder"

    name = models.CharField(max_length=64, unique=True, validators=[_NAME])
    origin = models.CharField(max_length=16, choices=Origin.choices, default=Origin.ADMIN, editable=False)
    enabled = models.BooleanField(default=True)
    is_default = models.BooleanField(default=False)

    # Where it is. Empty where the environment says it.
    base_url = models.CharField(max_length=500, blank=True, help_text="Up to and without /chat/completions")
    model = models.CharField(max_length=200, blank=True, help_text="The name that the endpoint knows it by")
    sealed_key = models.TextField(blank=True, editable=False)
    allow_loopback = models.BooleanField(default=False, help_text="It may be on this machine")
    allow_private = models.BooleanField(default=False, help_text="It may be in a private network")

    # How it is asked.
    protocol = models.CharField(max_length=16, choices=Protocol.choices, default=Protocol.AUTO)
    temperature = models.FloatField(
        null=True, blank=True, default=0.2, validators=[MinValueValidator(0), MaxValueValidator(5)]
    )
    top_p = models.FloatField(
        null=True, blank=True, default=0.9, validators=[MinValueValidator(0.001), MaxValueValidator(1)]
    )
    context_tokens = models.PositiveIntegerField(default=32768, validators=[MinValueValidator(2048)])
    answer_tokens = models.PositiveIntegerField(default=4096, validators=[MinValueValidator(64)])

    # What it costs, in one currency for the whole server; empty where that is not known.
    price_prompt = models.FloatField(
        null=True, blank=True, validators=[MinValueValidator(0)], help_text="Of a million prompt tokens"
    )
    price_completion = models.FloatField(
        null=True, blank=True, validators=[MinValueValidator(0)], help_text="Of a million answer tokens"
    )

    # Patience and pace.
    attempts = models.PositiveSmallIntegerField(
        default=5, validators=[MinValueValidator(1), MaxValueValidator(20)]
    )
    backoff_seconds = models.FloatField(
        default=1.0, validators=[MinValueValidator(0)], help_text="The first wait; each next is twice it"
    )
    connect_seconds = models.FloatField(default=10.0, validators=[MinValueValidator(0.1)])
    silence_seconds = models.FloatField(
        default=120.0, validators=[MinValueValidator(0.1)], help_text="Before the first piece and between two"
    )
    answer_seconds = models.FloatField(
        default=600.0, validators=[MinValueValidator(0.1)], help_text="A longer answer is cut"
    )
    requests_per_minute = models.FloatField(null=True, blank=True, validators=[MinValueValidator(0.01)])
    requests_at_once = models.PositiveSmallIntegerField(
        null=True, blank=True, validators=[MinValueValidator(1)]
    )

    # What was found out about it.
    calls_tools = models.BooleanField(null=True, editable=False)
    served = models.JSONField(default=list, editable=False)  # names its endpoint listed when last asked
    trouble = models.CharField(max_length=500, blank=True, editable=False)  # why it cannot be asked now
    tried_at = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("-is_default", "name")
        constraints = (
            models.UniqueConstraint(
                fields=["is_default"], condition=Q(is_default=True), name="language_model_one_default"
            ),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def has_key(self) -> bool:
        return bool(self.sealed_key)

    def validate_constraints(self, exclude: Collection[str] | None = None) -> None:
        """That another one is the default is no mistake: saving moves it (`services.language_model_save`)."""
        super().validate_constraints(exclude={*(exclude or ()), "is_default"})

    def clean(self) -> None:
        wrong: dict[str, str] = {}
        if self.origin == self.Origin.ADMIN:
            if not self.model:
                wrong["model"] = "Give the name that the endpoint knows the model by."
            try:
                self.base_url = check_url(self.base_url)
            except AddressRefused as refused:
                wrong["base_url"] = f"{refused}."
        if self.answer_tokens * 2 > self.context_tokens:
            wrong["answer_tokens"] = "At most half of the context, so that a prompt fits beside the answer."
        if (self.price_prompt is None) != (self.price_completion is None):
            wrong["price_prompt"] = "Give both prices or none."
        if wrong:
            raise ValidationError(wrong)
