"""A store on each database, as the stores' own tests have it."""

from tests.stores.conftest import clock, store, store_url

__all__ = ["clock", "store", "store_url"]
