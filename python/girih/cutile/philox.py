"""The generator of random numbers of a pretended device, as programs read it that draw numbers themselves.

A generator of CUDA has 16 bytes of state: a seed, and how many numbers were drawn. Kernels that draw numbers take both and move the
second on:

    seed, offset = torch.cuda.default_generators[0].get_state().view(torch.int64)

PyTorch's own functions draw from the host's generator here. Its state belongs to those two numbers: who sets a state that was read
before gets the same numbers again, from PyTorch and from kernels.
"""

#: States of the host's generator that are kept for programs that go back to them.
_KEPT = 64


def generator(torch, device):
    """The device's generator."""

    class Philox(torch._C.Generator):
        def begin(self, seed):
            self.seed_, self.offset_, self.drawn, self.kept = seed & (1 << 64) - 1, 0, torch.get_rng_state(), {}
            return self

        def get_state(self):
            host = torch.get_rng_state()
            if not torch.equal(host, self.drawn):
                self.offset_, self.drawn = self.offset_ + 4, host
            self.kept[self.seed_, self.offset_] = host
            if len(self.kept) > _KEPT:
                del self.kept[next(iter(self.kept))]
            words = self.seed_.to_bytes(8, "little") + self.offset_.to_bytes(8, "little")
            return torch.frombuffer(bytearray(words), dtype=torch.uint8)

        def set_state(self, state):
            words = bytes(state.cpu().tolist())
            if len(words) != 16:
                raise RuntimeError("RNG state is wrong size")
            seed, self.offset_ = (int.from_bytes(words[at : at + 8], "little") for at in (0, 8))
            host = self.kept.get((seed, self.offset_))
            if host is not None:
                torch.set_rng_state(host)
            elif seed != self.seed_:
                torch.default_generator.manual_seed(seed)
            self.seed_, self.drawn = seed, torch.get_rng_state()
            return self

        def manual_seed(self, seed):
            torch.default_generator.manual_seed(seed)
            super().manual_seed(seed)
            return self.begin(seed)

        def initial_seed(self):
            return self.seed_

        def get_offset(self):
            self.get_state()
            return self.offset_

        def set_offset(self, offset):
            self.offset_ = offset

        @property
        def device(self):
            return device

    return Philox(device="cpu").begin(torch.default_generator.initial_seed())
