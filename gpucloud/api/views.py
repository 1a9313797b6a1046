"""What every viewset shares: rows fetched through the user, strict bodies, answers by audience."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, cast

from django.db.models import Model, QuerySet
from django.http import Http404
from django.urls import Resolver404, resolve
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers, viewsets
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from gpucloud import policy
from gpucloud.api.filters import Filter, StrictFilter
from gpucloud.api.idempotency import once
from gpucloud.models import User

IDEMPOTENCY = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    description="The same key and body within 24 hours give the first answer again.",
)


class Door(viewsets.GenericViewSet[Any]):
    """A viewset over `rows()`; `full` shows an object to the platform, `public` to its tenant."""

    filter_backends = [StrictFilter]
    filters: ClassVar[Mapping[str, Filter]] = {}
    search: ClassVar[tuple[str, ...]] = ()
    hidden: ClassVar[tuple[str, str] | None] = None
    full: ClassVar[type[serializers.Serializer[Any]]]
    public: ClassVar[type[serializers.Serializer[Any]] | None] = None
    # Lists show less where an object carries much.
    brief: ClassVar[type[serializers.Serializer[Any]] | None] = None
    public_brief: ClassVar[type[serializers.Serializer[Any]] | None] = None

    def rows(self) -> QuerySet[Any]:
        raise NotImplementedError

    @property
    def person(self) -> User:
        return cast(User, self.request.user)

    @property
    def actor(self) -> str:
        return self.person.username

    @property
    def platform(self) -> bool:
        return policy.sees_platform(self.request.user)

    def get_queryset(self) -> QuerySet[Any]:
        return policy.visible(self.request.user, self.rows())

    def get_serializer_class(self) -> type[serializers.Serializer[Any]]:
        drawn = getattr(self, "swagger_fake_view", False)
        if self.public is None or drawn or self.platform:
            shape, less = self.full, self.brief
        else:
            shape, less = self.public, self.public_brief
        return less if less is not None and self.action == "list" else shape

    def one(self, rows: QuerySet[Any] | None = None, **lookup: Any) -> Any:
        """The row, as far as the person may see it; else NotFound."""
        # PostgreSQL takes no NUL, so nothing has a name with one.
        if any(isinstance(value, str) and "\0" in value for value in lookup.values()):
            raise NotFound
        found = (self.get_queryset() if rows is None else rows).filter(**lookup).first()
        if found is None:
            raise NotFound
        return found

    def require(self, verb: str, obj: Model | type[Model]) -> None:
        policy.require(self.request.user, verb, obj)

    def body(self, shape: type[serializers.Serializer[Any]]) -> dict[str, Any]:
        """The request's values, checked; a body that was left out counts as an empty object."""
        # An empty form is how some clients send no body; serializers would read it as all false.
        given = self.request.data or {}
        checked = shape(data=given, context=self.get_serializer_context())
        checked.is_valid(raise_exception=True)
        if unstorable(given):
            told = "Leave NUL and surrogate characters out."
            raise serializers.ValidationError({"non_field_errors": [told]})
        values: dict[str, Any] = checked.validated_data
        return values

    def shown(self, row: Any) -> Any:
        return self.get_serializer_class()(row, context=self.get_serializer_context()).data

    def answer(self, row: Any, status: int = 200) -> Response:
        return Response(self.shown(row), status=status)

    def accepted(self, row: Any) -> Response:
        """The answer of a verb: it was written down, and its steps follow."""
        return self.answer(row, 202)

    def created(self, create: Callable[[], Any]) -> Response:
        """Make the object once per Idempotency-Key, and answer 201 with it."""
        return once(self.request, lambda: self.answer(create(), 201))

    def list(self, request: Request) -> Response:
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response(self.get_serializer(page, many=True).data)


class NoSuchAddress(APIView):
    """Under /api/v1/ what matches nothing is a problem document too, not a page."""

    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if not request.path.endswith("/") and _resolves(f"{request.path}/"):
            raise NotFound(f"Addresses end with a slash: {request.path}/.")
        raise NotFound(f"There is no address {request.path}.")

    def get(self, request: Request, **kwargs: Any) -> Response:
        raise Http404

    post = put = patch = delete = get


def unstorable(value: Any) -> bool:
    """Whether a JSON value holds text, at any depth, that a database refuses."""
    if isinstance(value, str):
        return any(char == "\0" or "\ud800" <= char <= "\udfff" for char in value)
    if isinstance(value, Mapping):
        return any(unstorable(key) or unstorable(one) for key, one in value.items())
    return isinstance(value, list) and any(map(unstorable, value))


def _resolves(path: str) -> bool:
    try:
        return getattr(resolve(path).func, "cls", None) is not NoSuchAddress
    except Resolver404:
        return False


def verb(
    name: str, request: Any, response: Any, status: int = 202, **more: Any
) -> Callable[[Any], Any]:
    """The schema of a POST on a sub-path."""
    return extend_schema(operation_id=name, request=request, responses={status: response}, **more)
