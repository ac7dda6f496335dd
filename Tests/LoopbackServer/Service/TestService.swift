internal import Connect
internal import ConnectTesting
internal import Foundation
internal import SwiftProtobuf

/// Implements `connect.test.v1.TestService`.
enum TestService {
  /// The methods by path.
  static let methods: [String: ServerMethod] = Dictionary(
    uniqueKeysWithValues: [
      ServerMethod(TestMethods.echo) { try await Self.echo(TestCall($0, $1, $2)) },
      ServerMethod(TestMethods.count) { try await Self.count(TestCall($0, $1, $2)) },
      ServerMethod(TestMethods.sum) { try await Self.sum(TestCall($0, $1, $2)) },
      ServerMethod(TestMethods.converse) { try await Self.converse(TestCall($0, $1, $2)) },
      ServerMethod(TestMethods.lookup) { try await Self.lookup(TestCall($0, $1, $2)) },
      ServerMethod(TestMethods.flood) { try await Self.flood(TestCall($0, $1, $2)) },
      ServerMethod(TestMethods.unimplemented) { _, _, _ in
        throw ConnectError(code: .unimplemented, message: "never implemented")
      },
    ].map { ($0.info.path, $0) }
  )

  private static func echo(
    _ call: TestCall<Connect_Test_V1_EchoRequest, Connect_Test_V1_EchoResponse>
  ) async throws {
    let request = try await call.receiveOne()
    try await call.begin(request.instruction)
    try call.failIfInstructed(request.instruction)
    try await call.send(
      .with {
        if request.hasPayload { $0.payload = request.payload }
        $0.seen = call.seen
        $0.padding = request.instruction.padding
      }
    )
  }

  private static func count(
    _ call: TestCall<Connect_Test_V1_CountRequest, Connect_Test_V1_CountResponse>
  ) async throws {
    let request = try await call.receiveOne()
    try await call.begin(request.instruction)
    for index in 0..<request.instruction.messageCount {
      try call.failIfInstructed(request.instruction, sent: index)
      if index > 0 { try await call.sleep(milliseconds: request.instruction.messageDelayMs) }
      try await call.send(
        .with {
          $0.number = request.from &+ Int64(index)
          if index == 0 { $0.seen = call.seen }
          $0.padding = request.instruction.padding
        }
      )
    }
    try call.failIfInstructed(request.instruction)
  }

  private static func sum(
    _ call: TestCall<Connect_Test_V1_SumRequest, Connect_Test_V1_SumResponse>
  ) async throws {
    var instruction = Connect_Test_V1_Instruction()
    var sum: Int64 = 0
    while let request = try await call.receive() {
      if call.received == 1 { instruction = request.instruction }
      sum &+= request.number
      if instruction.finishAfter > 0, call.received >= instruction.finishAfter { break }
    }
    try await call.begin(instruction)
    try call.failIfInstructed(instruction)
    try await call.send(
      .with {
        $0.sum = sum
        $0.seen = call.seen
        $0.padding = instruction.padding
      }
    )
  }

  private static func converse(
    _ call: TestCall<Connect_Test_V1_ConverseRequest, Connect_Test_V1_ConverseResponse>
  ) async throws {
    guard let first = try await call.receive() else { return }
    let instruction = first.instruction
    var held: [Connect_Test_V1_ConverseRequest] = []
    var answered: UInt32 = 0

    func answer(_ request: Connect_Test_V1_ConverseRequest) async throws {
      for _ in 0..<max(1, instruction.messageCount) {
        try call.failIfInstructed(instruction, sent: answered)
        if answered > 0 { try await call.sleep(milliseconds: instruction.messageDelayMs) }
        try await call.send(
          .with {
            $0.index = answered
            if request.hasPayload { $0.payload = request.payload }
            $0.seen = call.seen
            $0.padding = instruction.padding
          }
        )
        answered += 1
      }
    }

    let isHalfDuplex = instruction.halfDuplex || call.version == .http1
    if !isHalfDuplex { try await call.begin(instruction) }
    var next: Connect_Test_V1_ConverseRequest? = first
    while let request = next {
      if isHalfDuplex {
        held.append(request)
      } else {
        try await answer(request)
      }
      if instruction.finishAfter > 0, call.received >= instruction.finishAfter { break }
      next = try await call.receive()
    }
    if isHalfDuplex { try await call.begin(instruction) }
    for request in held { try await answer(request) }
    try call.failIfInstructed(instruction)
  }

  private static func lookup(
    _ call: TestCall<Connect_Test_V1_LookupRequest, Connect_Test_V1_LookupResponse>
  ) async throws {
    let request = try await call.receiveOne()
    try await call.begin(request.instruction)
    try call.failIfInstructed(request.instruction)
    try await call.send(
      .with {
        $0.value = "value of \(request.key)"
        $0.seen = call.seen
        $0.padding = request.instruction.padding
      }
    )
  }

  private static func flood(
    _ call: TestCall<Connect_Test_V1_FloodRequest, Connect_Test_V1_FloodResponse>
  ) async throws {
    let request = try await call.receiveOne()
    let size = UInt64(request.messageBytes == 0 ? 65536 : request.messageBytes)
    let data = Data(repeating: 0x5a, count: Int(min(size, request.totalBytes)))
    var offset: UInt64 = 0
    while offset < request.totalBytes {
      let count = min(size, request.totalBytes - offset)
      try await call.send(
        .with {
          $0.offset = offset
          $0.data = data.prefix(Int(count))
        }
      )
      offset += count
    }
  }
}

extension Connect_Test_V1_Instruction {
  fileprivate var padding: Data { Data(count: Int(self.responseBytes)) }
}
