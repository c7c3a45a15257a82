"""Replies: what is sent comes back, and nothing else is believed."""

from __future__ import annotations

import contextlib
import json
import pickle
import struct

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autograder.compare import differences
from autograder.isolation.observation import MOST_ARRAYS, Malformed, Unsupported, decode_reply, read_header
from autograder.worker.encode import HEADER, MAGIC, encode_reply
from tests.strategies import observations

EMPTY_ARRAYS = struct.pack("<Q", 2) + b"{}"


def framed(document: bytes, arrays: bytes = EMPTY_ARRAYS) -> bytes:
    return HEADER.pack(MAGIC, len(document), len(arrays)) + document + arrays


def blob(header: object, data: bytes = b"") -> bytes:
    text = json.dumps(header).encode() if not isinstance(header, bytes) else header
    return struct.pack("<Q", len(text)) + text + data


def observation(node: object) -> bytes:
    return framed(json.dumps({"kind": "observation", "value": node}).encode())


@given(observations)
def test_what_is_sent_comes_back(value):
    reply = decode_reply(encode_reply("observation", value))
    assert reply.kind == "observation"
    assert list(differences(reply.value, value, rtol=0, atol=0)) == []


@pytest.mark.parametrize(
    "tensor",
    [
        torch.arange(12.0).reshape(3, 4).T,
        torch.arange(12.0)[::2],
        torch.ones(3, 1).expand(3, 5),
        torch.ones(2, requires_grad=True) * 2,
        torch.nn.Parameter(torch.ones(2)),
        torch.ones(3, dtype=torch.bfloat16),
        torch.tensor([1 + 2j]),
        torch.ones(2).as_subclass(type("Odd", (torch.Tensor,), {})),
    ],
)
def test_views_graphs_and_subclasses_arrive_as_plain_tensors(tensor):
    arrived = decode_reply(encode_reply("observation", tensor)).value
    assert type(arrived) is torch.Tensor
    assert not arrived.requires_grad
    assert torch.equal(arrived, tensor.detach().as_subclass(torch.Tensor))


@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, b"bytes", np.array([object()]), np.array(["a"]), 10**2000, [torch.zeros(30_000_000)],
     torch.ones(2, device="meta"), torch.eye(2).to_sparse(), len],
)  # fmt: skip
def test_what_is_no_plain_data_is_named_not_sent(value):
    arrived = decode_reply(encode_reply("observation", value)).value
    arrived = arrived[0] if isinstance(arrived, list) else arrived
    assert isinstance(arrived, Unsupported)


def test_shared_and_equal_tensors_are_kept_apart():
    shared = torch.ones(3)
    arrived = decode_reply(encode_reply("observation", [shared, shared, shared[:2]])).value
    assert [len(tensor) for tensor in arrived] == [3, 3, 2]


def test_a_nest_without_end_is_refused_before_it_is_sent():
    nest: list = []
    nest.append(nest)
    assert "unsupported" in encode_reply("observation", nest).decode(errors="replace")


F32 = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
FOUR = b"\0" * 4

EVIL = {
    "nothing": b"",
    "a pickle": pickle.dumps([1, 2]),
    "another magic": b"XXXX" + HEADER.pack(MAGIC, 2, 10)[4:] + b"{}" + EMPTY_ARRAYS,
    "a length beyond all bounds": HEADER.pack(MAGIC, 1 << 60, 1 << 60),
    "cut short": framed(b'{"kind": "observation", "value": ["none"]}')[:-1],
    "bytes too many": framed(b'{"kind": "observation", "value": ["none"]}') + b"x",
    "no JSON": framed(b"{"),
    "not UTF-8": framed(b'{"kind": "\xff"}'),
    "no object": framed(b"[]"),
    "no kind": framed(b"{}"),
    "a kind that is a list": framed(b'{"kind": []}'),
    "names that are a number": framed(b'{"kind": "shortcut", "names": 5}'),
    "names that are numbers": framed(b'{"kind": "shortcut", "names": [5]}'),
    "a fact too many": framed(b'{"kind": "observation", "points": 100}'),
    "a fact too few": framed(b'{"kind": "missing", "name": "x"}'),
    "a flag that is text": framed(b'{"kind": "missing", "name": "x", "unfilled": "yes"}'),
    "keys made to collide": observation(["dict", [[["int", str(i * (2**61 - 1))], ["none"]] for i in range(3000)]]),
    "a verdict": framed(b'{"kind": "passed"}'),
    "NaN in JSON": framed(b'{"kind": "observation", "value": NaN}'),
    "deep JSON": framed(b'{"kind": "observation", "value": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "deep nodes": observation(eval('["list", [' * 40 + "" + "]]" * 40)),
    "an integer of 4,400 digits": observation(["int", "9" * 4400]),
    "an integer that is none": observation(["int", "x"]),
    "a bare integer": framed(b'{"kind": "observation", "value": ' + b"9" * 5000 + b"}"),
    "a float that is none": observation(["float", "0xzz"]),
    "a float without end": observation(["float", "1" * 1000]),
    "a number for a float": observation(["float", 1]),
    "an unknown node": observation(["exec", "1"]),
    "a private method": observation(["_init__", "1"]),
    "a node that is text": observation("none"),
    "an empty node": observation([]),
    "arguments too many": observation(["none", 1, 2]),
    "an array that is not there": observation(["tensor", "0"]),
    "a dict with a tensor for a key": framed(
        json.dumps({"kind": "observation", "value": ["dict", [[["tensor", "0"], ["none"]]]]}).encode(),
        blob({"0": F32}, FOUR),
    ),
    "a fact that is no fact": framed(b'{"kind": "missing", "name": {"a": 1}}'),
    "an unhashable key": observation(["dict", [[["tuple", [["list", []]]], ["none"]]]]),
    "arrays cut short": framed(b'{"kind": "observation"}', b"\0\0"),
    "an array header too long": framed(b'{"kind": "observation"}', struct.pack("<Q", 1 << 62)),
    "an array header that is no JSON": framed(b'{"kind": "observation"}', blob(b"{")),
    "an array header that is a list": framed(b'{"kind": "observation"}', blob([])),
    "a huge empty shape": framed(
        b'{"kind": "observation"}', blob({"0": {"dtype": "F32", "shape": [2**40, 0], "data_offsets": [0, 0]}})
    ),
    "an overflowing shape": framed(
        b'{"kind": "observation"}', blob({"0": {"dtype": "F32", "shape": [2**32, 2**32], "data_offsets": [0, 0]}})
    ),
    "a negative size": framed(
        b'{"kind": "observation"}', blob({"0": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}, FOUR)
    ),
    "a true size": framed(
        b'{"kind": "observation"}', blob({"0": {"dtype": "F32", "shape": [True], "data_offsets": [0, 4]}}, FOUR)
    ),
    "too many axes": framed(
        b'{"kind": "observation"}', blob({"0": {"dtype": "F32", "shape": [1] * 90, "data_offsets": [0, 4]}}, FOUR)
    ),
    "float8": framed(
        b'{"kind": "observation"}', blob({"0": {"dtype": "F8_E5M2", "shape": [4], "data_offsets": [0, 4]}}, FOUR)
    ),
    "arrays that overlap": framed(b'{"kind": "observation"}', blob({"0": F32, "1": F32}, FOUR)),
    "bytes of no array": framed(b'{"kind": "observation"}', blob({"0": F32}, FOUR * 2)),
    "a place outside": framed(
        b'{"kind": "observation"}', blob({"0": {**F32, "data_offsets": [4, 8]}}, FOUR)
    ),
    "an entry too many": framed(b'{"kind": "observation"}', blob({"0": {**F32, "code": "x"}}, FOUR)),
    "metadata": framed(b'{"kind": "observation"}', blob({"__metadata__": {"a": "b"}})),
}  # fmt: skip


@pytest.mark.parametrize("name", EVIL)
def test_what_no_worker_sends_is_refused(name):
    with pytest.raises(Malformed):
        decode_reply(EVIL[name])


@given(st.binary(max_size=300))
def test_any_bytes_are_a_reply_or_refused(data):
    with contextlib.suppress(Malformed):
        decode_reply(data)


@given(observations, st.data())
def test_a_damaged_reply_is_a_reply_or_refused(value, data):
    reply = bytearray(encode_reply("observation", value))
    for _ in range(data.draw(st.integers(1, 5))):
        reply[data.draw(st.integers(0, len(reply) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(Malformed):
        decode_reply(bytes(reply))


def test_a_reply_larger_than_allowed_is_refused_at_its_header():
    with pytest.raises(Malformed, match="bytes"):
        read_header(HEADER.pack(MAGIC, 10, MOST_ARRAYS + 1))


def test_texts_are_bounded_and_can_be_written_whatever_was_sent():
    reply = decode_reply(framed(b'{"kind": "raised", "type": "' + b"T" * 90_000 + b'", "message": "bad \\ud800"}'))
    assert len(reply.facts["type"]) == 100
    assert reply.facts["message"].encode() == b"bad ?"
    assert decode_reply(observation(["str", "\ud800"])).value == "?"
