"""Strict values: what is sent is what is meant, or the field is named with a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC
from typing import Any

from rest_framework import serializers

from gpucloud import labels
from gpucloud.policy import kind_of


class Strict(serializers.Serializer[Any]):
    """A body: unknown names are errors, on every level."""

    def to_internal_value(self, data: Any) -> Any:
        errors: dict[str, Any] = {}
        if isinstance(data, Mapping):
            known = ", ".join(self.fields) or "none"
            errors = {
                str(name): [f"Unknown field. Known are: {known}."]
                for name in data
                if name not in self.fields
            }
        try:
            values = super().to_internal_value(data)
        except serializers.ValidationError as error:
            assert isinstance(error.detail, dict)
            raise serializers.ValidationError({**error.detail, **errors}) from error
        if errors:
            raise serializers.ValidationError(errors)
        return values


class Nothing(Strict):
    """The body of a verb that takes no values."""


class Text(serializers.CharField):
    default_error_messages = {"invalid": "Give text."}

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return super().to_internal_value(data)


class Whole(serializers.IntegerField):
    default_error_messages = {"invalid": "Give a whole number."}

    def to_internal_value(self, data: Any) -> int:
        if type(data) is not int:
            self.fail("invalid")
        return super().to_internal_value(data)


class Flag(serializers.BooleanField):
    default_error_messages = {"invalid": "Say true or false."}

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid")
        return data


class Labels(serializers.DictField):
    """Kubernetes labels; checked because they end in kubelet's arguments."""

    child = Text(allow_blank=True, max_length=63)

    def to_internal_value(self, data: Any) -> dict[str, str]:
        values: dict[str, str] = super().to_internal_value(data)
        errors = {
            key: [wrong] for key, value in values.items() if (wrong := labels.problem(key, value))
        }
        if errors:
            raise serializers.ValidationError(errors)
        return values


class Settings(serializers.DictField):
    """A driver's settings by name; which names there are is the driver's word."""


class Moment(serializers.DateTimeField):
    """A time in UTC, RFC 3339, whatever the reader's zone is."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(default_timezone=UTC, **kwargs)


class Row(serializers.Serializer[Any]):
    """What every object shows."""

    kind = serializers.SerializerMethodField()
    uid = serializers.UUIDField()
    rev = serializers.IntegerField(help_text="Grows with each change.")
    created = Moment()

    def get_kind(self, row: Any) -> str:
        return kind_of(row)


class Named(serializers.Serializer[Any]):
    """Another object in few words."""

    name = serializers.CharField()
    uid = serializers.UUIDField()
