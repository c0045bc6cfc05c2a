// The workloads W1 to W5 (crates/simtest/src/workloads.rs) in ns-3: `ns3 W1 0.1`, `ns3 W5 50`.
//
// The number is the part of the usual duration, of W5 the number of transfers. Prints one line, its
// fields parted by tabs: data segments, segments sent again, bytes delivered, virtual seconds, and
// nanoseconds of processor time that the runs took: without making the nodes, but in W5, where a run
// is short and making them belongs to it.
//
// What ns-3 is spared, for none of it is transport: traffic control (queues of hosts are the links'
// own), ARP, and routing: routers of the dumbbell look at the address and hand the packet on.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <cstdio>
#include <cstring>
#include <ctime>
#include <vector>

using namespace ns3;

namespace
{

// What a Linux sender with the usual net.ipv4.tcp_wmem keeps under way: see the README.
constexpr uint32_t SEND_BUFFER = 1820 * 1448;
constexpr uint32_t RECEIVE_BUFFER = 32 * 1024 * 1024;
constexpr uint16_t PORT = 5001;
constexpr uint32_t LEFT = 0x0a000001;  // 10.0.0.1
constexpr uint32_t RIGHT = 0x0a400001; // 10.64.0.1

uint64_t g_segments;
uint64_t g_resent;

uint64_t
CpuNanos()
{
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return uint64_t(now.tv_sec) * 1000000000 + now.tv_nsec;
}

void
OnSend(Ptr<const Packet> packet)
{
    g_segments += packet->GetSize() > 200;
}

void
OnResend(Ptr<const Packet>,
         const TcpHeader&,
         const Address&,
         const Address&,
         Ptr<const TcpSocketBase>)
{
    ++g_resent;
}

// A line between two nodes: rates of both ends, room in packets or bytes in front of them.
NetDeviceContainer
Line(Ptr<Node> a, Ptr<Node> b, const char* rate, const char* back, const char* room, Time delay)
{
    PointToPointHelper helper;
    helper.DisableFlowControl();
    helper.SetQueue("ns3::DropTailQueue", "MaxSize", QueueSizeValue(QueueSize(room)));
    helper.SetDeviceAttribute("DataRate", StringValue(rate));
    helper.SetChannelAttribute("Delay", TimeValue(delay));
    auto devices = helper.Install(a, b);
    devices.Get(1)->SetAttribute("DataRate", StringValue(back));
    return devices;
}

// All of 10.0.0.0/8 lies behind the one device: no router is needed, and none asked.
void
Address1(Ptr<NetDevice> device, uint32_t address)
{
    auto ipv4 = device->GetNode()->GetObject<Ipv4>();
    auto interface = ipv4->AddInterface(device);
    ipv4->AddAddress(interface, Ipv4InterfaceAddress(Ipv4Address(address), "255.0.0.0"));
    ipv4->SetUp(interface);
}

// Hands packets on by their address.
class Forwarder
{
  public:
    Forwarder(uint32_t base, Ptr<NetDevice> beyond)
        : m_base(base),
          m_beyond(beyond)
    {
        Listen(beyond);
    }

    void Add(Ptr<NetDevice> device)
    {
        m_devices.push_back(device);
        Listen(device);
    }

  private:
    void Listen(Ptr<NetDevice> device)
    {
        device->SetReceiveCallback(MakeCallback(&Forwarder::Receive, this));
    }

    bool Receive(Ptr<NetDevice>, Ptr<const Packet> packet, uint16_t protocol, const Address&)
    {
        Ipv4Header header;
        packet->PeekHeader(header);
        uint32_t n = header.GetDestination().Get() - m_base;
        auto& device = n < m_devices.size() ? m_devices[n] : m_beyond;
        return device->Send(packet->Copy(), device->GetBroadcast(), protocol);
    }

    uint32_t m_base;
    Ptr<NetDevice> m_beyond;
    std::vector<Ptr<NetDevice>> m_devices;
};

// A flow from one host to another; of no size: without end.
Ptr<PacketSink>
Flow(Ptr<NetDevice> from, Ptr<NetDevice> to, uint32_t address, uint64_t bytes, Time start)
{
    from->TraceConnectWithoutContext("MacTx", MakeCallback(&OnSend));
    auto tcp = TypeIdValue(TcpSocketFactory::GetTypeId());
    auto source = CreateObjectWithAttributes<BulkSendApplication>(
        "Protocol", tcp,
        "Remote", AddressValue(InetSocketAddress(Ipv4Address(address), PORT)),
        "SendSize", UintegerValue(1448),
        "MaxBytes", UintegerValue(bytes));
    source->TraceConnectWithoutContext("TcpRetransmission", MakeCallback(&OnResend));
    source->SetStartTime(start);
    from->GetNode()->AddApplication(source);
    auto sink = CreateObjectWithAttributes<PacketSink>(
        "Protocol", tcp,
        "Local", AddressValue(InetSocketAddress(Ipv4Address::GetAny(), PORT)));
    sink->SetStartTime(Seconds(0));
    to->GetNode()->AddApplication(sink);
    return sink;
}

std::vector<Ptr<PacketSink>>
OneFlow(const char* rate, const char* room, Time delay, double loss, uint64_t bytes)
{
    NodeContainer hosts(2);
    InternetStackHelper().Install(hosts);
    auto devices = Line(hosts.Get(0), hosts.Get(1), rate, "100Gbps", room, delay);
    Address1(devices.Get(0), LEFT);
    Address1(devices.Get(1), RIGHT);
    if (loss > 0)
    {
        auto errors = CreateObject<RateErrorModel>();
        errors->SetUnit(RateErrorModel::ERROR_UNIT_PACKET);
        errors->SetRate(loss);
        devices.Get(1)->SetAttribute("ReceiveErrorModel", PointerValue(errors));
    }
    return {Flow(devices.Get(0), devices.Get(1), RIGHT, bytes, Seconds(0))};
}

std::vector<Ptr<PacketSink>>
Dumbbell(uint32_t flows, const char* rate)
{
    NodeContainer routers(2);
    auto middle = Line(routers.Get(0), routers.Get(1), rate, rate, "5000p", Seconds(0));
    // They live as long as the process.
    auto left = new Forwarder(LEFT, middle.Get(0));
    auto right = new Forwarder(RIGHT, middle.Get(1));
    std::vector<Ptr<PacketSink>> sinks;
    InternetStackHelper stack;
    for (uint32_t n = 0; n < flows; ++n)
    {
        NodeContainer hosts(2);
        stack.Install(hosts);
        auto access = [&](Ptr<Node> host, int router, Time delay) {
            return Line(host, routers.Get(router), "1Gbps", "1Gbps", "1000p", delay);
        };
        auto a = access(hosts.Get(0), 0, Seconds(0));
        auto b = access(hosts.Get(1), 1, MilliSeconds(20));
        left->Add(a.Get(1));
        right->Add(b.Get(1));
        Address1(a.Get(0), LEFT + n);
        Address1(b.Get(0), RIGHT + n);
        sinks.push_back(Flow(a.Get(0), b.Get(0), RIGHT + n, 0, MicroSeconds(10 * n)));
    }
    return sinks;
}

// Runs what has been made; bytes that were delivered.
uint64_t
Run(const std::vector<Ptr<PacketSink>>& sinks)
{
    Simulator::Run();
    uint64_t delivered = 0;
    for (auto& sink : sinks)
    {
        delivered += sink->GetTotalRx();
    }
    return delivered;
}

} // namespace

int
main(int argc, char** argv)
{
    if (argc != 3)
    {
        fprintf(stderr, "usage: ns3 W1|W2|W3|W4|W5 PART\n");
        return 2;
    }
    const char* name = argv[1];
    double part = atof(argv[2]);
    using namespace std;
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", TypeIdValue(TcpLinuxReno::GetTypeId()));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(1448));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(SEND_BUFFER));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(RECEIVE_BUFFER));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(2));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(MilliSeconds(40)));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(true));

    if (!strcmp(name, "W5"))
    {
        uint64_t delivered = 0;
        double ended = 0;
        auto began = CpuNanos();
        for (int n = 0; n < int(part); ++n)
        {
            auto sinks = OneFlow("100Mbps", "250000B", MilliSeconds(10), 0, 1000000);
            delivered += Run(sinks);
            ended += Simulator::Now().GetSeconds();
            Simulator::Destroy();
        }
        auto nanos = CpuNanos() - began;
        printf("%lu\t%lu\t%lu\t%f\t%lu\n", g_segments, g_resent, delivered, ended, nanos);
        return 0;
    }
    double seconds;
    std::vector<Ptr<PacketSink>> sinks;
    if (!strcmp(name, "W1"))
    {
        seconds = 60 * part;
        sinks = OneFlow("1Gbps", "5000000B", MilliSeconds(20), 0, 0);
    }
    else if (!strcmp(name, "W2"))
    {
        seconds = 10 * part;
        sinks = OneFlow("1Gbps", "100p", MicroSeconds(75), 0.01, 0);
    }
    else if (!strcmp(name, "W3"))
    {
        seconds = 10 * part;
        sinks = Dumbbell(100, "1Gbps");
    }
    else if (!strcmp(name, "W4"))
    {
        seconds = 2 * part;
        sinks = Dumbbell(10000, "10Gbps");
    }
    else
    {
        fprintf(stderr, "%s is not W1, W2, W3, W4 or W5\n", name);
        return 2;
    }
    Simulator::Stop(Seconds(seconds));
    auto began = CpuNanos();
    auto delivered = Run(sinks);
    auto nanos = CpuNanos() - began;
    printf("%lu\t%lu\t%lu\t%f\t%lu\n", g_segments, g_resent, delivered, seconds, nanos);
    return 0;
}
