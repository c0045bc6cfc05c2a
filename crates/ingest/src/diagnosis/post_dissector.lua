
-- One tree on each packet of a connection between the first and the last frame of a finding.
local severities = { note = PI_NOTE, warning = PI_WARN, error = PI_ERROR }
local protocol = Proto("ackclock", "Ackclock findings")
local fields = {
  code = ProtoField.string("ackclock.code", "Code"),
  severity = ProtoField.string("ackclock.severity", "Severity"),
  title = ProtoField.string("ackclock.title", "Finding"),
  cause = ProtoField.string("ackclock.cause", "Cause"),
  cost = ProtoField.double("ackclock.cost", "Cost in seconds"),
  limits = ProtoField.bool("ackclock.limits", "Limits the transfer"),
}
protocol.fields = { fields.code, fields.severity, fields.title, fields.cause, fields.cost, fields.limits }
local experts = {}
for name, severity in pairs(severities) do
  experts[name] = ProtoExpert.new("ackclock.finding." .. name, "Finding", PI_PROTOCOL, severity)
end
protocol.experts = { experts.note, experts.warning, experts.error }

local stream_of = Field.new("tcp.stream")
local by_stream = {}
for _, finding in ipairs(findings) do
  by_stream[finding.stream] = by_stream[finding.stream] or {}
  table.insert(by_stream[finding.stream], finding)
end

function protocol.dissector(buffer, packet, tree)
  local stream = stream_of()
  for _, finding in ipairs(stream and by_stream[stream.value] or {}) do
    if finding.first <= packet.number and packet.number <= finding.last then
      local text = finding.code .. ": " .. finding.title
      local item = tree:add(protocol, buffer(), "Ackclock " .. text)
      for _, name in ipairs({ "code", "severity", "title", "cause", "cost", "limits" }) do
        item:add(fields[name], finding[name]):set_generated()
      end
      -- In the list of expert information once, not for each packet.
      if packet.number == finding.first then
        item:add_proto_expert_info(experts[finding.severity], text)
      end
    end
  end
end

register_postdissector(protocol)
