"""What the topics share: how variables are read, units, the shape of an address."""

from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_settings import BaseSettings, SettingsConfigDict

Port = Annotated[int, Field(ge=1, le=65_535)]
Milliseconds = Annotated[int, Field(ge=0, le=86_400_000)]
PositiveMilliseconds = Annotated[int, Field(ge=1, le=86_400_000)]


class Section(BaseSettings):
    """The settings of one topic; unset and empty variables take the default."""

    model_config = SettingsConfigDict(
        frozen=True,
        extra="ignore",
        env_ignore_empty=True,
        populate_by_name=True,
        use_attribute_docstrings=True,
        validate_default=True,
    )


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _http_scheme(value: str) -> str:
    if not value.startswith(("http://", "https://")):
        raise ValueError("must start with http:// or https://")
    return value.rstrip("/")


AnyCase = BeforeValidator(_lower)
"""Marks a word that may be written in capitals."""

HttpUrl = Annotated[str, AfterValidator(_http_scheme)]
