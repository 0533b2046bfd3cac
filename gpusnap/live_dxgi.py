"""Windows' graphics adapters by ctypes: DXGI lists them, DXCore knows which are integrated, gdi32 where they sit.

    [{"luid": "0x00000000_0x0001d6f4", "description": "NVIDIA GeForce RTX 4080", "vendor_id": 4318,
      "device_id": 9860, "dedicated_bytes": ..., "shared_bytes": ..., "software": false,
      "integrated": false | null, "pci": "0000:01:00.0" | null, "driver_version": "32.0.15.6636" | null}, ...]

Headers: dxgi.h, dxcore_interface.h, d3dkmthk.h. DXGI is the authority: the registry's DirectX key keeps adapters
that are long gone, and `Win32_VideoController.AdapterRAM` ends at 4 GB.
"""

from __future__ import annotations

import ctypes
from typing import Any

from gpusnap.host import Unsupported

_FACTORY1 = "770aae78-f26f-4dba-a829-253c83d1b387"
_DXGI_DEVICE = "54ec77fa-1377-44e6-8c32-88fd5f44c84c"
_CORE_FACTORY = "78ee5945-c36e-4b13-a669-005dd11c0f06"
_CORE_ADAPTER = "f0db4c7f-fe5a-42a2-bd62-f2a6cf6fc83e"
# Places in the tables of functions.
_RELEASE, _ENUM_ADAPTERS1, _CHECK_INTERFACE, _GET_DESC1 = 2, 12, 9, 10
_CORE_BY_LUID, _CORE_PROPERTY = 4, 6
_IS_INTEGRATED = 12
_SOFTWARE = 2
_ADAPTER_ADDRESS = 6
_MAX_ADAPTERS = 64
_CALL = getattr(ctypes, "WINFUNCTYPE", ctypes.CFUNCTYPE)


class _Guid(ctypes.Structure):
    _fields_ = [
        ("a", ctypes.c_uint32),
        ("b", ctypes.c_uint16),
        ("c", ctypes.c_uint16),
        ("d", ctypes.c_uint8 * 8),
    ]

    @classmethod
    def of(cls, text: str) -> _Guid:
        digits = bytes.fromhex(text.replace("-", ""))
        first = (int.from_bytes(digits[0:4]), int.from_bytes(digits[4:6]), int.from_bytes(digits[6:8]))
        return cls(*first, (ctypes.c_uint8 * 8)(*digits[8:]))


class _Luid(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint32), ("high", ctypes.c_int32)]


class _Desc1(ctypes.Structure):
    _fields_ = [
        ("description", ctypes.c_wchar * 128),
        ("vendor_id", ctypes.c_uint32),
        ("device_id", ctypes.c_uint32),
        ("subsystem_id", ctypes.c_uint32),
        ("revision", ctypes.c_uint32),
        ("dedicated_video", ctypes.c_size_t),
        ("dedicated_system", ctypes.c_size_t),
        ("shared_system", ctypes.c_size_t),
        ("luid", _Luid),
        ("flags", ctypes.c_uint32),
    ]


class _OpenFromLuid(ctypes.Structure):
    _fields_ = [("luid", _Luid), ("handle", ctypes.c_uint32)]


class _QueryInfo(ctypes.Structure):
    _fields_ = [
        ("handle", ctypes.c_uint32),
        ("kind", ctypes.c_uint32),
        ("data", ctypes.c_void_p),
        ("size", ctypes.c_uint32),
    ]


class _Address(ctypes.Structure):
    _fields_ = [("bus", ctypes.c_uint32), ("device", ctypes.c_uint32), ("function", ctypes.c_uint32)]


def graphics_adapters(dxgi: Any = None, dxcore: Any = None, gdi: Any = None) -> list[dict[str, Any]]:
    """The libraries are the system's, or what stands in for them."""
    dxgi = _load("dxgi.dll") if dxgi is None else dxgi
    dxcore = _load_or_none("dxcore.dll") if dxcore is None else dxcore
    gdi = _load_or_none("gdi32.dll") if gdi is None else gdi
    factory = ctypes.c_void_p()
    wanted = _Guid.of(_FACTORY1)
    dxgi.CreateDXGIFactory1.restype = ctypes.c_int32
    status = dxgi.CreateDXGIFactory1(ctypes.byref(wanted), ctypes.byref(factory))
    if status < 0:
        raise OSError(5, f"CreateDXGIFactory1: 0x{status & 0xFFFFFFFF:08X}")
    found = []
    for index in range(_MAX_ADAPTERS):
        adapter = ctypes.c_void_p()
        if _method(factory, _ENUM_ADAPTERS1, ctypes.c_uint32(index), ctypes.byref(adapter)) < 0:
            break
        described = _described(adapter, dxcore, gdi)
        if described is not None:
            found.append(described)
        _method(adapter, _RELEASE)
    _method(factory, _RELEASE)
    return found


def _described(adapter: ctypes.c_void_p, dxcore: Any, gdi: Any) -> dict[str, Any] | None:
    desc = _Desc1()
    if _method(adapter, _GET_DESC1, ctypes.byref(desc)) < 0:
        return None
    return {
        "luid": f"0x{desc.luid.high & 0xFFFFFFFF:08x}_0x{desc.luid.low:08x}",
        "description": desc.description,
        "vendor_id": desc.vendor_id,
        "device_id": desc.device_id,
        "dedicated_bytes": desc.dedicated_video,
        "shared_bytes": desc.shared_system,
        "software": bool(desc.flags & _SOFTWARE),
        "integrated": None if dxcore is None else _integrated(dxcore, desc.luid),
        "pci": None if gdi is None else _pci_address(gdi, desc.luid),
        "driver_version": _driver_version(adapter),
    }


def _driver_version(adapter: ctypes.c_void_p) -> str | None:
    version = ctypes.c_int64()
    device = _Guid.of(_DXGI_DEVICE)
    if _method(adapter, _CHECK_INTERFACE, ctypes.byref(device), ctypes.byref(version)) < 0:
        return None
    return ".".join(str(version.value >> shift & 0xFFFF) for shift in (48, 32, 16, 0))


def _integrated(dxcore: Any, luid: _Luid) -> bool | None:
    """DXCore's own word; None on systems before 1903."""
    factory, adapter = ctypes.c_void_p(), ctypes.c_void_p()
    wanted, kind = _Guid.of(_CORE_FACTORY), _Guid.of(_CORE_ADAPTER)
    create = getattr(dxcore, "DXCoreCreateAdapterFactory", None)
    if create is None:
        return None
    create.restype = ctypes.c_int32
    if create(ctypes.byref(wanted), ctypes.byref(factory)) < 0:
        return None
    answer = ctypes.c_bool()
    known = None
    by_luid = (ctypes.byref(luid), ctypes.byref(kind), ctypes.byref(adapter))
    if _method(factory, _CORE_BY_LUID, *by_luid) >= 0:
        size = ctypes.c_size_t(ctypes.sizeof(answer))
        if _method(adapter, _CORE_PROPERTY, ctypes.c_uint32(_IS_INTEGRATED), size, ctypes.byref(answer)) >= 0:
            known = answer.value
        _method(adapter, _RELEASE)
    _method(factory, _RELEASE)
    return known


def _pci_address(gdi: Any, luid: _Luid) -> str | None:
    """Windows names no PCI domain."""
    names = ("D3DKMTOpenAdapterFromLuid", "D3DKMTQueryAdapterInfo", "D3DKMTCloseAdapter")
    if not all(hasattr(gdi, name) for name in names):
        return None
    for name in names:
        getattr(gdi, name).restype = ctypes.c_int32
    opened = _OpenFromLuid(luid=luid)
    if gdi.D3DKMTOpenAdapterFromLuid(ctypes.byref(opened)) != 0:
        return None
    address = _Address()
    query = _QueryInfo(
        opened.handle,
        _ADAPTER_ADDRESS,
        ctypes.cast(ctypes.byref(address), ctypes.c_void_p),
        ctypes.sizeof(address),
    )
    status = gdi.D3DKMTQueryAdapterInfo(ctypes.byref(query))
    handle = ctypes.c_uint32(opened.handle)
    gdi.D3DKMTCloseAdapter(ctypes.byref(handle))
    # A virtual adapter sits nowhere and answers with all ones.
    if status != 0 or address.bus > 0xFF or address.device > 0x1F or address.function > 7:
        return None
    return f"0000:{address.bus:02x}:{address.device:02x}.{address.function:x}"


def _method(this: ctypes.c_void_p, place: int, *args: Any) -> int:
    """A COM object's function by its place in the table."""
    table = ctypes.cast(this, ctypes.POINTER(ctypes.POINTER(ctypes.c_void_p)))[0]
    prototype = _CALL(ctypes.c_int32, ctypes.c_void_p, *(type(_value(arg)) for arg in args))
    return int(prototype(table[place])(this, *map(_value, args)))


def _value(arg: Any) -> Any:
    """Pointers pass as addresses: `byref` has no type of its own that a prototype could name."""
    return ctypes.cast(arg, ctypes.c_void_p) if not isinstance(arg, ctypes.c_uint32 | ctypes.c_size_t) else arg


def _load(name: str) -> Any:
    try:
        return ctypes.WinDLL(name)  # type: ignore[attr-defined,unused-ignore]
    except (AttributeError, OSError) as missing:
        raise Unsupported(f"{name}: {missing}") from missing


def _load_or_none(name: str) -> Any:
    try:
        return _load(name)
    except Unsupported:
        return None
