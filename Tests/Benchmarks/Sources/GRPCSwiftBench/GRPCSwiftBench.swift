import ArgumentParser
import BenchMessages
import Foundation
import GRPCCore
import GRPCNIOTransportHTTP2Posix
import GRPCProtobuf
import Measuring
import NIOPosix

/// grpc-swift-2 as the client of a benchmark.
@main
struct GRPCSwiftBench: AsyncParsableCommand {
  typealias Payload = Connect_Bench_V1_Payload
  typealias Client = GRPCClient<HTTP2ClientTransport.Posix>

  @OptionGroup var workload: Workload
  @Option(help: "Interceptors that pass everything on.") var interceptors = 0

  private static func method(_ name: String) -> MethodDescriptor {
    MethodDescriptor(fullyQualifiedService: "connect.bench.v1.BenchService", method: name)
  }

  private var request: Payload {
    .with { $0.data = Data(repeating: UInt8(ascii: "x"), count: self.workload.size) }
  }

  func run() async throws {
    let workload = self.workload
    let transport = try HTTP2ClientTransport.Posix(
      target: .ipv4(address: "127.0.0.1", port: workload.port),
      transportSecurity: .plaintext,
      eventLoopGroup: MultiThreadedEventLoopGroup(numberOfThreads: 1)
    )
    let interceptors: [any ClientInterceptor] = Array(repeating: PassThrough(), count: self.interceptors)
    try await withGRPCClient(transport: transport, interceptors: interceptors) { client in
      let meter = Meter(workload)
      let report = try await meter.run {
        try await withThrowingTaskGroup(of: Samples.self) { group in
          for _ in 0..<workload.inFlight {
            group.addTask {
              switch workload.kind {
              case .unary: try await self.unary(client, meter)
              case .serverStream: try await self.serverStream(client, meter)
              case .clientStream: try await self.clientStream(client, meter)
              case .bidi: try await self.bidi(client, meter)
              case .idle: throw ValidationError("not measured")
              }
            }
          }
          var all = Samples()
          for try await samples in group { all.add(samples) }
          return all
        }
      }
      report.print()
    }
  }

  private func unary(_ client: Client, _ meter: Meter) async throws -> Samples {
    var samples = Samples()
    let request = self.request
    while meter.isRunning {
      let start = Clock.now
      let message: Payload = try await client.unary(
        request: ClientRequest(message: request),
        descriptor: Self.method("Unary"),
        serializer: ProtobufSerializer<Payload>(),
        deserializer: ProtobufDeserializer<Payload>(),
        options: .defaults
      ) { response in
        try response.message
      }
      precondition(!message.data.isEmpty)
      if meter.isMeasuring { samples.add(since: start) }
    }
    return samples
  }

  private var streamMetadata: Metadata {
    var metadata: Metadata = ["x-messages": "\(self.workload.messages)"]
    if self.workload.framedEach { metadata.addString("each", forKey: "x-frames") }
    return metadata
  }

  private func serverStream(_ client: Client, _ meter: Meter) async throws -> Samples {
    var samples = Samples()
    let request = self.request
    while meter.isRunning {
      let start = Clock.now
      let count = try await client.serverStreaming(
        request: ClientRequest(message: request, metadata: self.streamMetadata),
        descriptor: Self.method("ServerStream"),
        serializer: ProtobufSerializer<Payload>(),
        deserializer: ProtobufDeserializer<Payload>(),
        options: .defaults
      ) { response in
        var count = 0
        for try await message in response.messages {
          precondition(!message.data.isEmpty)
          count += 1
        }
        return count
      }
      precondition(count == self.workload.messages)
      if meter.isMeasuring { samples.add(since: start, count: count) }
    }
    return samples
  }

  private func clientStream(_ client: Client, _ meter: Meter) async throws -> Samples {
    var samples = Samples()
    let request = self.request
    let messages = self.workload.messages
    while meter.isRunning {
      let start = Clock.now
      _ = try await client.clientStreaming(
        request: StreamingClientRequest { writer in
          for _ in 0..<messages { try await writer.write(request) }
        },
        descriptor: Self.method("ClientStream"),
        serializer: ProtobufSerializer<Payload>(),
        deserializer: ProtobufDeserializer<Payload>(),
        options: .defaults
      ) { response in
        try response.message
      }
      if meter.isMeasuring { samples.add(since: start, count: messages) }
    }
    return samples
  }

  private func bidi(_ client: Client, _ meter: Meter) async throws -> Samples {
    let request = self.request
    let (turns, turn) = AsyncStream.makeStream(of: Void.self)
    return try await client.bidirectionalStreaming(
      request: StreamingClientRequest { writer in
        for await _ in turns { try await writer.write(request) }
      },
      descriptor: Self.method("Bidi"),
      serializer: ProtobufSerializer<Payload>(),
      deserializer: ProtobufDeserializer<Payload>(),
      options: .defaults
    ) { response in
      var samples = Samples()
      var start = Clock.now
      turn.yield()
      for try await message in response.messages {
        precondition(!message.data.isEmpty)
        if meter.isMeasuring { samples.add(since: start) }
        guard meter.isRunning else { break }
        start = Clock.now
        turn.yield()
      }
      turn.finish()
      return samples
    }
  }
}

private struct PassThrough: ClientInterceptor {
  func intercept<Input: Sendable, Output: Sendable>(
    request: StreamingClientRequest<Input>,
    context: ClientContext,
    next: (StreamingClientRequest<Input>, ClientContext) async throws -> StreamingClientResponse<Output>
  ) async throws -> StreamingClientResponse<Output> {
    try await next(request, context)
  }
}
