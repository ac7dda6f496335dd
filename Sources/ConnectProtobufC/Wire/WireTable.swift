internal import CProtobufC
internal import Synchronization

/// What decoding has to know of a type of messages, side by side in memory: reading it takes no reference counting.
struct WireTable {
  struct Field {
    enum Form: UInt8 {
      /// Not set is the same as zero, or a null pointer.
      case plain
      /// With a flag for whether it is there.
      case flagged
      /// With the number of the member that is set.
      case oneofMember
      case repeated
    }

    let number: UInt32
    let offset: UInt32
    /// Of the flag, the number or the count that ``form`` says.
    let quantifierOffset: UInt32
    let form: Form
    /// Of the value in memory.
    let kind: FieldKind
    let wireType: UInt8
    let isRequired: Bool
    /// Required, and not to be seen in the struct whether it is set: it has to be in each piece of a message.
    let isCounted: Bool
    let isStringAsBytes: Bool
    /// The type of a message.
    let message: UnsafePointer<WireTable>?
    /// For its name.
    let descriptor: UnsafePointer<ProtobufCFieldDescriptor>
  }

  let descriptor: MessageDescriptorPointer
  let size: Int
  /// An empty message, to be copied.
  let emptyMessage: UnsafeRawPointer
  /// By number.
  let fields: UnsafePointer<Field>
  let fieldCount: Int
  /// Of the fields that are counted.
  let countedCount: Int
  /// Whether there can be a required field in a message of this type, at any depth.
  let containsRequired: Bool
}

/// The tables of types of messages, each with all that it reaches.
final class WireTables: Sendable {
  /// Those of protoc-c's structs, whose descriptors are constants.
  static let ofStructs = WireTables()

  private struct State {
    let memory = DescriptorMemory()
    nonisolated(unsafe) var tables: [MessageDescriptorPointer: UnsafeMutablePointer<WireTable>] = [:]
  }

  private let state = Mutex(State())

  /// The table of a type, made if there is none yet. It is there, and does not change, as long as this object.
  func table(of descriptor: MessageDescriptorPointer) -> UnsafePointer<WireTable> {
    self.state.withLock { Reference(pointer: Self.table(of: descriptor, &$0)) }.pointer
  }

  /// Safe to share: what is there is not changed any more.
  private struct Reference: @unchecked Sendable {
    let pointer: UnsafePointer<WireTable>
  }

  private static func table(
    of root: MessageDescriptorPointer,
    _ state: inout State
  ) -> UnsafePointer<WireTable> {
    if let table = state.tables[root] { return UnsafePointer(table) }
    var new: [MessageDescriptorPointer] = []
    var open = [root]
    while let descriptor = open.popLast() {
      if state.tables[descriptor] != nil { continue }
      // Filled below, when the tables of the fields' types have their places.
      state.tables[descriptor] = state.memory.place(for: WireTable.self)
      new.append(descriptor)
      for field in descriptor.fieldPointers where field.pointee.kind == .message {
        if let inner = field.pointee.messageDescriptor { open.append(inner) }
      }
    }
    let withRequired = self.withRequired(new, state)
    for descriptor in new {
      let fields = descriptor.fieldPointers.map { WireTable.Field($0, tables: state.tables) }
      state.tables[descriptor]?.initialize(
        to: WireTable(
          descriptor: descriptor,
          size: descriptor.pointee.sizeof_message,
          emptyMessage: UnsafeRawPointer(state.memory.arena.newMessage(descriptor)),
          fields: UnsafePointer(
            state.memory.array(of: fields) ?? state.memory.place(for: WireTable.Field.self)
          ),
          fieldCount: fields.count,
          countedCount: fields.count(where: \.isCounted),
          containsRequired: withRequired.contains(descriptor)
        )
      )
    }
    return UnsafePointer(state.tables[root] ?? state.memory.place(for: WireTable.self))
  }
}

extension WireTables {
  /// Those of `new` types that have a required field, or a type in them that has.
  private static func withRequired(_ new: [MessageDescriptorPointer], _ state: State)
    -> Set<MessageDescriptorPointer>
  {
    let isNew = Set(new)
    var owners = Owners<MessageDescriptorPointer>()
    var found: [MessageDescriptorPointer] = []
    for descriptor in new {
      for field in descriptor.fieldPointers {
        if field.pointee.label == PROTOBUF_C_LABEL_REQUIRED { found.append(descriptor) }
        guard field.pointee.kind == .message, let inner = field.pointee.messageDescriptor else { continue }
        if isNew.contains(inner) {
          owners.add(descriptor, of: inner)
        } else if state.tables[inner]?.pointee.containsRequired == true {
          found.append(descriptor)
        }
      }
    }
    return owners.reached(from: found)
  }
}

extension WireTable.Field {
  fileprivate init(
    _ descriptor: UnsafePointer<ProtobufCFieldDescriptor>,
    tables: [MessageDescriptorPointer: UnsafeMutablePointer<WireTable>]
  ) {
    let field = descriptor.pointee
    self.number = field.id
    self.offset = field.offset
    self.quantifierOffset = field.quantifier_offset
    self.form =
      if field.isRepeated {
        .repeated
      } else if field.isOneofMember {
        .oneofMember
      } else {
        field.quantifier_offset != 0 ? .flagged : .plain
      }
    self.kind = field.kind
    self.wireType = UInt8(truncatingIfNeeded: field.kind.wireType)
    self.isRequired = field.label == PROTOBUF_C_LABEL_REQUIRED
    self.isCounted = self.isRequired && field.quantifier_offset == 0 && field.kind != .message
    self.isStringAsBytes = field.isStringAsBytes
    let inner = field.kind == .message ? field.messageDescriptor : nil
    self.message = inner.flatMap { tables[$0] }.map { UnsafePointer($0) }
    self.descriptor = descriptor
  }
}
