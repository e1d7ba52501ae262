"""All addresses: the page, signing in, the API with its document, the admin."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from webapp.accounts.urls import api_urlpatterns as accounts_api
from webapp.accounts.urls import pages_urlpatterns as accounts_pages
from webapp.cards.urls import api_urlpatterns as cards_api
from webapp.common.apis import DoctorApi
from webapp.common.pages import not_found, permission_denied, server_error
from webapp.evaluations.urls import api_urlpatterns as evaluations_api
from webapp.gallery.urls import api_urlpatterns as gallery_api
from webapp.ide.urls import pages_urlpatterns as ide_pages
from webapp.language_models.urls import api_urlpatterns as language_models_api
from webapp.profiles.urls import api_urlpatterns as profiles_api
from webapp.reviews.urls import api_urlpatterns as reviews_api
from webapp.runs.urls import api_urlpatterns as runs_api
from webapp.workspaces.urls import api_urlpatterns as workspaces_api
from webapp.workspaces.urls import pages_urlpatterns as workspaces_pages

api = [
    *accounts_api,
    *cards_api,
    *workspaces_api,
    *gallery_api,
    *language_models_api,
    *reviews_api,
    *profiles_api,
    *runs_api,
    *evaluations_api,
    path("doctor", DoctorApi.as_view(), name="doctor"),
    path("schema", SpectacularAPIView.as_view(), name="schema"),
    # The split view keeps its script in a file of its own, as the content security policy wants.
    path("docs", SpectacularSwaggerSplitView.as_view(url_name="api:schema"), name="docs"),
]

urlpatterns = [
    *ide_pages,
    *accounts_pages,
    *workspaces_pages,
    path("api/v1/", include((api, "api"))),
    path("admin/", admin.site.urls),
]

handler403 = permission_denied
handler404 = not_found
handler500 = server_error
