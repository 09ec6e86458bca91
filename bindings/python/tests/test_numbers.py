# SPDX-License-Identifier: MIT
"""Completions, and the names of the numbers in them."""
import copy
import pickle

import pytest
from conftest import PATIENCE

import sluice


def test_completion_is_no_tuple(pair):
    a, b = pair
    request = b.channel.post_receive(b.memory, deadline=PATIENCE)
    a.channel.send(a.memory[:3], deadline=PATIENCE, immediate=7)
    completion = request.result(PATIENCE)
    assert not isinstance(completion, tuple)
    assert completion.opcode is sluice.Opcode.RECEIVE and completion.opcode == sluice.RECEIVE
    assert completion.status is sluice.Status.SUCCESS
    assert completion.error_class is sluice.ErrorClass.NONE
    assert (completion.bytes, completion.immediate, completion.ok) == (3, 7, True)
    assert "bytes=3" in repr(completion) and "Opcode.RECEIVE" in repr(completion)
    with pytest.raises(AttributeError):
        completion.bytes = 4
    with pytest.raises(AttributeError):
        completion.other = 4
    for again in (copy.copy(completion), pickle.loads(pickle.dumps(completion))):
        assert again == completion and hash(again) == hash(completion)
    assert completion != b.channel.error
    with pytest.raises(TypeError):
        sluice.Completion(**{name: 0 for name in sluice._completion._FIELDS}, other=1)


def test_numbers_have_names(pair):
    a, b = pair
    with pytest.raises(sluice.DeadlineError) as caught:
        b.channel.receive(b.memory, deadline=0.05)
    assert caught.value.completion.status is sluice.Status.DEADLINE
    assert caught.value.completion.error_class is sluice.ErrorClass.TIMEOUT
    assert b.channel.error.status is sluice.Status.DEADLINE
    assert b.channel.error.opcode is sluice.Opcode.RECEIVE
    assert isinstance(a.channel.info.level, sluice.Level) and a.channel.info.level.name != "UNKNOWN"
    assert isinstance(a.context.info.link_layer, sluice.LinkLayer)
    assert a.context.info.max_completions > 0
    assert isinstance(sluice.devices()[-1].level, sluice.Level)
    rights = sluice.LOCAL_WRITE | sluice.REMOTE_READ
    assert rights == sluice.Access.LOCAL_WRITE | sluice.Access.REMOTE_READ
    assert sluice.NO_ACCESS is sluice.Access.NONE and sluice.SEND is sluice.Opcode.SEND


@pytest.mark.parametrize(
    "kind", [sluice.Opcode, sluice.Status, sluice.ErrorClass, sluice.Level, sluice.PeerState]
)
def test_unknown_numbers_are_accepted(kind):
    later = kind(99)
    assert later == 99 and later.name == "UNKNOWN" and isinstance(later, kind)
    assert later not in list(kind)
    with pytest.raises(ValueError):
        kind("99")
    assert sluice.Access(1 << 20 | 1) & sluice.LOCAL_WRITE
