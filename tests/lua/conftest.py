import pytest
from hypothesis import settings

from .servers import LiveServer
from .stage import Stage

settings.register_profile("lua", deadline=None, database=None, print_blob=True)
settings.load_profile("lua")


@pytest.fixture
def stage(server: LiveServer) -> Stage:
    return Stage(server.client)
