"""The public interface: counting, preparing and planning, `Graph`, and the NetworkX backend."""
