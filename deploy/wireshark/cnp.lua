-- Names RoCEv2 congestion notification packets (BTH opcode 0x81), which the
-- InfiniBand dissector prints as an unknown opcode, and shows FECN and BECN of
-- every BTH, which it leaves out.
-- Payload of the emulator is a fill that Wireshark may take for RPC over RDMA;
-- --disable-heuristic rpcrdma_infiniband stops that.
-- Use: tshark -X lua_script:cnp.lua -r FILE, or copy to the personal plugin folder.

local cnp = Proto("rocecnp", "RoCEv2 congestion bits")
local f_fecn = ProtoField.bool("rocecnp.fecn", "FECN", 8, nil, 0x80)
local f_becn = ProtoField.bool("rocecnp.becn", "BECN", 8, nil, 0x40)
local f_resv = ProtoField.bytes("rocecnp.reserved", "Reserved (16 bytes)")
local f_qp = ProtoField.uint24("rocecnp.destqp", "Destination queue pair", base.HEX)
cnp.fields = { f_fecn, f_becn, f_resv, f_qp }
local e_resv = ProtoExpert.new("rocecnp.reserved.nonzero", "Reserved bytes are not zero",
  expert.group.PROTOCOL, expert.severity.WARN)
cnp.experts = { e_resv }

local opcode = Field.new("infiniband.bth.opcode")
local CNP, BTH, RESERVED = 0x81, 12, 16

function cnp.dissector(tvb, pinfo, root)
  local op = opcode()
  if not op then return end
  local off = op.offset
  if tvb:len() < off + BTH then return end
  local name = op.value == CNP and "RoCEv2 CNP" or "RoCEv2 congestion bits"
  local tree = root:add(cnp, tvb(off, BTH), name)
  tree:add(f_fecn, tvb(off + 4, 1))
  tree:add(f_becn, tvb(off + 4, 1))
  if op.value ~= CNP or tvb:len() < off + BTH + RESERVED then return end
  tree:add(f_qp, tvb(off + 5, 3))
  local body = tvb(off + BTH, RESERVED)
  local item = tree:add(f_resv, body)
  if body:bytes():tohex():find("[^0]") then item:add_proto_expert_info(e_resv) end
  pinfo.cols.info:set("CNP QP=0x" .. tvb(off + 5, 3):bytes():tohex():lower())
end

register_postdissector(cnp)
