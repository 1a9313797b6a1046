"""Pages of OS images: list, detail, form, removal."""

from __future__ import annotations

from typing import Any, Final

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_GET, require_http_methods

from gpucloud import policy, refusals, ui
from gpucloud.listing import Column, Filter, Listing
from gpucloud.live import ViewClass
from gpucloud.pages import page
from gpucloud.problems import Problem
from provisioning.forms import ImageForm
from provisioning.models import OSImage
from provisioning.services import images as services
from provisioning.showing import claims as showing

COLUMNS: Final = (
    Column("name", "Image", ("name",)),
    Column("format", "Format", ("format", "name")),
    Column("checksum", "Checksum"),
    Column("types", "Node types", ("types",), number=True),
    Column("claims", "Live claims", ("live",), number=True),
)


@login_required
@require_GET
def index(request: HttpRequest) -> HttpResponse:
    live = Count("claims", filter=~Q(claims__state="gone"), distinct=True)
    if not policy.sees_platform(request.user):
        mine = Q(claims__tenant__memberships__user=request.user)
        live = Count("claims", filter=~Q(claims__state="gone") & mine, distinct=True)
    rows = policy.visible(request.user, OSImage.objects.all())
    listing: Listing[OSImage] = Listing(
        request.GET,
        rows.annotate(types=Count("node_types", distinct=True), live=live),
        name="images",
        search=("name", "display_name", "checksum"),
        columns=COLUMNS,
        filters=[Filter("format", "Format", OSImage.Format.choices)],
    )
    new = ui.Link("Add image", "/images/new/", "primary", "plus")
    links = [new] if policy.may(request.user, "create", OSImage) else []
    found = {"listing": listing, "actions": links, "new": links[0].label if links else ""}
    template = "provisioning/image/list.html"
    return page(request, template, found, {"images": "provisioning/image/listing.html"})


def find(request: HttpRequest, name: str) -> OSImage:
    return get_object_or_404(policy.visible(request.user, OSImage.objects.all()), name=name)


@login_required
@require_GET
def detail(request: HttpRequest, name: str) -> HttpResponse:
    image = find(request, name)
    claims = showing.claims(request.user).filter(image=image).exclude(state="gone")
    at, links = image.get_absolute_url(), []
    if policy.may(request.user, "change", image):
        links.append(ui.Link("Edit", f"{at}edit/", "primary", "edit"))
    if policy.may(request.user, "delete", image):
        links.append(ui.Link("Remove image…", f"{at}delete/", "danger"))
    found = {
        "image": image,
        "actions": links,
        "facts": _facts(image),
        "types": image.node_types.order_by("full_name"),
        "claims": showing.summarise(claims[:100]),
        "view": ViewClass.of(request.user),  # type: ignore[arg-type]
    }
    return render(request, "provisioning/image/detail.html", found)


def _facts(image: OSImage) -> list[ui.Fact]:
    return [
        ui.Fact("Name for people", image.display_name),
        ui.Fact("URL", image.url),
        ui.Fact("Format", image.get_format_display()),
        ui.Fact(image.get_checksum_type_display(), image.checksum, copy=True),
        ui.Fact("UID", str(image.uid), copy=True),
    ]


@login_required
@require_http_methods(["GET", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    refusals.require(request.user, "create", OSImage)
    form = ImageForm(request.POST or None)
    if request.method == "GET" or not form.is_valid():
        return _form(request, form)
    try:
        image = services.create(request.user.get_username(), **form.cleaned_data)
    except Problem as problem:
        refusals.beside_fields(form, problem, {})
        return _form(request, form)
    messages.success(request, f"Image {image} was added")
    return redirect(image.get_absolute_url())


@login_required
@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, name: str) -> HttpResponse:
    image = find(request, name)
    refusals.require(request.user, "change", image)
    form = ImageForm(request.POST or None, image=image)
    if request.method == "GET" or not form.is_valid():
        return _form(request, form, image)
    changed = {key: form.cleaned_data[key] for key in form.changed_data}
    try:
        if changed:
            services.update(image, request.user.get_username(), **changed)
    except Problem as problem:
        refusals.beside_fields(form, problem, {})
        return _form(request, form, find(request, name))
    messages.success(request, f"Image {image} was changed")
    return redirect(image.get_absolute_url())


def _form(request: HttpRequest, form: ImageForm, image: OSImage | None = None) -> HttpResponse:
    found: dict[str, Any] = {
        "form": form,
        "title": f"Edit {image}" if image else "Add image",
        "lede": "What is written to disk, and the checksum that it must have.",
        "section": ("Images", "/images/"),
        "parent": image,
        "back": image.get_absolute_url() if image else "/images/",
        "verb": "Save image" if image else "Add image",
    }
    return render(request, "ui/form_page.html", found, status=422 if form.errors else 200)


@login_required
@require_http_methods(["GET", "POST"])
def delete(request: HttpRequest, name: str) -> HttpResponse:
    image = find(request, name)
    refusals.require(request.user, "delete", image)
    if request.method == "GET":
        return _ask(request, image)
    try:
        services.remove(image, request.user.get_username())
    except Problem as problem:
        return _ask(request, image, problem)
    messages.success(request, f"Image {image} was removed")
    return redirect("images")


def _ask(request: HttpRequest, image: OSImage, refusal: Problem | None = None) -> HttpResponse:
    found = {
        "section": ("Images", "/images/"),
        "parent": image,
        "heading": "Remove image",
        "title": f"Remove image {image}?",
        "text": "Nothing can be installed with it any more. The file at its URL is not touched.",
        "verb": "Remove image",
        "keep": "Keep image",
        "action": f"{image.get_absolute_url()}delete/",
        "back": image.get_absolute_url(),
        "notices": [refusals.notice(refusal)] if refusal else [],
    }
    status = refusals.status(refusal) if refusal else 200
    return render(request, "ui/confirm_page.html", found, status=status)
