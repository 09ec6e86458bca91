# SPDX-License-Identifier: MIT
"""Regions that are published by name as they are, and actions that move blocks."""
import numpy
import pytest
from conftest import DEVICE, PATIENCE

import sluice

PAGE = 4096
PAGES = 32
RIGHTS = sluice.REMOTE_READ | sluice.REMOTE_WRITE


class World:
    def __init__(self, domain):
        self.owner = sluice.BufferService(domain, address="127.0.0.1:0")
        self.domain = sluice.Context(DEVICE).domain()
        self.user = sluice.BufferService(self.domain, address="127.0.0.1:0")
        self.region = domain.allocate(PAGES * PAGE, access=sluice.LOCAL_WRITE | RIGHTS)
        self.region.array()[:] = numpy.repeat(numpy.arange(PAGES, dtype="uint8"), PAGE)
        self.into = numpy.zeros(PAGES * PAGE, dtype="uint8")

    def close(self):
        self.user.close()
        self.owner.close()


@pytest.fixture
def world(side):
    made = World(side.domain)
    yield made
    made.close()


def test_a_region_and_a_slice_of_it(world):
    whole = world.owner.publish(world.region)
    part = world.owner.publish(world.region[3 * PAGE + 7 : 5 * PAGE], access=sluice.REMOTE_READ)
    assert len(whole) == PAGES * PAGE and len(part) == 2 * PAGE - 7
    world.user.read(whole.handle, world.into, deadline=PATIENCE)
    assert (world.into == world.region.array()).all()
    into = numpy.zeros(len(part), dtype="uint8")
    world.user.read(part.handle, into, deadline=PATIENCE)
    assert (into == world.region.array()[3 * PAGE + 7 : 5 * PAGE]).all()
    assert bytes(part.memory) == into.tobytes()
    with pytest.raises(sluice.Error, match="goes beyond buffer 2"):
        world.user.read(part.handle, into, offset=1, deadline=PATIENCE)
    with pytest.raises(sluice.Error, match="not published for a write"):
        world.user.write(part.handle, into, deadline=PATIENCE)
    with pytest.raises(sluice.BusyError, match="published as buffer"):
        world.region.close()
    whole.close()
    part.close()
    world.region.close()


def test_rights_are_those_of_the_region(world):
    region = world.owner._domains[0].allocate(PAGE, access=sluice.REMOTE_READ)
    with pytest.raises(sluice.Error, match="more than the region"):
        world.owner.publish(region)
    world.owner.publish(region, access=sluice.REMOTE_READ).close()
    with pytest.raises(sluice.Error, match="no protection domain of the service"):
        world.user.publish(region, access=sluice.REMOTE_READ)


def test_pages_in_one_action(world):
    buffer = world.owner.publish(world.region)
    there, here = [5, 31, 0, 8], [1, 0, 3, 2]
    layouts = {
        "layout": sluice.Layout.paged(here, PAGE),
        "remote_layout": sluice.Layout.paged(there, PAGE),
    }
    world.user.read(buffer.handle, world.into, deadline=PATIENCE, **layouts)
    assert [world.into[i * PAGE] for i in here] == there
    assert not world.into[4 * PAGE :].any()
    # From a region here, in flight, and every other page there.
    own = world.domain.allocate(4 * PAGE)
    own.array()[:] = 77
    rows = sluice.Layout.strided(4, PAGE, 2 * PAGE)
    action = sluice.Action.write(buffer.handle, own, PAGE, user="rows", remote_layout=rows)
    batch = world.user.post([action], deadline=PATIENCE)
    done = batch.wait(PATIENCE)
    assert done[0].user == "rows" and done[0].bytes == 4 * PAGE
    assert [i for i in range(PAGES) if world.region.array()[i * PAGE] == 77] == [1, 3, 5, 7]
    with pytest.raises(sluice.Error, match="remote index 1 is 32"):
        wrong = sluice.Layout.paged([0, PAGES], PAGE)
        world.user.read(buffer.handle, world.into, deadline=PATIENCE, remote_layout=wrong)
    batch.close()
    buffer.close()
